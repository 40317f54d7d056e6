"""The controllers that turn workloads into Pods, one file each."""
