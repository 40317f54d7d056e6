"""The eviction queue, its gates, the dispatcher and the one worker that calls the eviction API."""
