"""The shape of what clients send and people look up: each type's fields, in one table.

It serves `kubectl explain` and the choice of merge keys by `kubectl apply` (as OpenAPI), and it
reads protobuf, in which Go clients send the built-in types. A line is a field: its JSON name, its
number in protobuf, its type, and what it means. Types that are not named here are not known to the
sandbox: protobuf that has one is refused.

    -           a field without a name of its own: the fields of its type stand in its place
    T?          a pointer in Go: a zero is sent on purpose, and kept
    []T         a list that patches replace whole
    [key]T      a list that strategic merge patches merge by that member
    [set]T      a list of primitives that they merge as a set
    {}T         a map from strings

Numbers and names are those of the API (generated.proto in k8s.io/api); the words are our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Shape: TypeAlias = Literal["one", "list", "map"]


@dataclass(frozen=True)
class Field:
    """A field of a type. `merge_by` is the merge key of its list, "set" for primitives."""

    name: str
    number: int
    type: str
    shape: Shape
    is_pointer: bool
    merge_by: str
    description: str

    @property
    def is_inline(self) -> bool:
        return self.name == "-"


@dataclass(frozen=True)
class Type:
    """A named type and its fields."""

    name: str
    description: str
    fields: tuple[Field, ...]


def _read(table: str) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for block in re.split(r"\n(?=\S)", table.strip()):
        head, *lines = block.splitlines()
        name, description = head.split(" ", 1)
        types[name] = Type(name, description, tuple(_field(line) for line in lines))
    return types


def _field(line: str) -> Field:
    name, number, kind, description = [*line.split(maxsplit=3), ""][:4]
    found = _KIND.fullmatch(kind)
    assert found is not None, line
    shape: Shape = "list" if found["list"] else "map" if found["map"] else "one"
    merge_by = (found["list"] or "").strip("[]")
    return Field(name, int(number), found["type"], shape, bool(found["nil"]), merge_by, description)


_KIND = re.compile(r"(?P<list>\[\w*\])?(?P<map>\{\})?(?P<type>\w+)(?P<nil>\?)?")
_TABLE = """
ObjectMeta What every object carries: its name, its labels, and what the server keeps about it.
  name 1 str Unique among the objects of its kind in the namespace; it never changes.
  generateName 2 str A prefix to which the server adds five random signs if there is no name.
  namespace 3 str The namespace that the object is in.
  selfLink 4 str No longer set.
  uid 5 str Tells this object from earlier and later ones of the same name.
  resourceVersion 6 str Changes at each write; sent back with an update it guards against lost ones.
  generation 7 int Counts the changes of the spec.
  creationTimestamp 8 Time When the server first stored the object.
  deletionTimestamp 9 Time When the object is to be gone; set by a deletion that takes time.
  deletionGracePeriodSeconds 10 int? How long the deletion may take, in seconds.
  labels 11 {}str Names and values that selectors choose by.
  annotations 12 {}str Names and values for programs; nothing selects by them.
  ownerReferences 13 [uid]OwnerReference The objects that this one goes with.
  finalizers 14 [set]str What has to be done elsewhere before the object may go.
OwnerReference An object that this one belongs to.
  kind 1 str Kind of the owner.
  name 3 str Name of the owner.
  uid 4 str UID of the owner.
  apiVersion 5 str API version of the owner.
  controller 6 bool? Whether the owner is what manages this object; one at most.
  blockOwnerDeletion 7 bool? Whether a foreground deletion of the owner waits for this object.
LabelSelector Chooses objects by their labels; all its parts must hold.
  matchLabels 1 {}str Labels that must be there with these values.
  matchExpressions 2 []LabelSelectorRequirement Further conditions on labels.
LabelSelectorRequirement A condition on one label.
  key 1 str The label.
  operator 2 str In, NotIn, Exists or DoesNotExist.
  values 3 []str What In and NotIn compare with.
LocalObjectReference An object in the same namespace.
  name 1 str Its name.
ObjectReference An object.
  kind 1 str Its kind.
  namespace 2 str Its namespace.
  name 3 str Its name.
  uid 4 str Its UID.
  apiVersion 5 str Its API version.
  resourceVersion 6 str The version that is meant.
  fieldPath 7 str A part of it, such as spec.containers{name}.
Condition One judgement on an object.
  type 1 str What is judged.
  status 2 str True, False or Unknown.
  observedGeneration 3 int The generation that was judged.
  lastTransitionTime 4 Time When the status last changed.
  reason 5 str Why, in one word.
  message 6 str Why, for people.
Pod Containers that run together on one node.
  metadata 1 ObjectMeta
  spec 2 PodSpec What is to run, and where it may.
  status 3 PodStatus How it stands, as its kubelet sees it.
PodTemplateSpec What the Pods of a workload are made from.
  metadata 1 ObjectMeta Labels and annotations that the Pods get.
  spec 2 PodSpec
PodSpec What a Pod runs, and where it may.
  volumes 1 [name]Volume Storage that its containers can mount.
  containers 2 [name]Container What runs; one at least.
  restartPolicy 3 str What follows a container's end: Always, OnFailure or Never.
  terminationGracePeriodSeconds 4 int? Time to end by itself after a deletion, in seconds (30).
  activeDeadlineSeconds 5 int? Time after which it is failed, in seconds from its start.
  dnsPolicy 6 str Which name servers it asks.
  nodeSelector 7 {}str Labels that its node must have.
  serviceAccountName 8 str Whose rights it has.
  serviceAccount 9 str An older name of serviceAccountName.
  nodeName 10 str The node that it is bound to; the scheduler sets it.
  hostNetwork 11 bool Shares the node's network.
  hostPID 12 bool Shares the node's process ids.
  hostIPC 13 bool Shares the node's inter-process communication.
  securityContext 14 PodSecurityContext Rights and users of all its containers.
  imagePullSecrets 15 [name]LocalObjectReference Secrets for image registries.
  hostname 16 str Its host name.
  subdomain 17 str Its subdomain.
  affinity 18 Affinity Which nodes and which neighbours it wants or shuns.
  schedulerName 19 str The scheduler that binds it.
  initContainers 20 [name]Container What runs before the containers, one after the other.
  automountServiceAccountToken 21 bool? Whether it gets its account's token as a file.
  tolerations 22 []Toleration Taints that do not keep it off a node.
  hostAliases 23 [ip]HostAlias Lines for its hosts file.
  priorityClassName 24 str The PriorityClass that its priority comes from.
  priority 25 int? Higher goes first, and may preempt lower.
  readinessGates 28 []PodReadinessGate Conditions that must be True besides for it to be Ready.
  runtimeClassName 29 str? Which container runtime runs it.
  enableServiceLinks 30 bool? Whether services appear in its environment.
  preemptionPolicy 31 str? Whether it may preempt others: PreemptLowerPriority or Never.
  overhead 32 {}Quantity What the runtime itself takes.
  topologySpreadConstraints 33 [topologyKey]TopologySpreadConstraint How even its kind must lie.
  setHostnameAsFQDN 35 bool? Whether its host name is the full one.
  hostUsers 37 bool? Whether it shares the node's user ids.
  schedulingGates 38 [name]PodSchedulingGate While there is one it is not scheduled.
PodSchedulingGate Holds a Pod back from the scheduler.
  name 1 str Its name.
PodReadinessGate A condition that readiness needs.
  conditionType 1 str Type of the condition.
HostAlias A line of a hosts file.
  ip 1 str The address.
  hostnames 2 []str Its names.
PodStatus How a Pod stands.
  phase 1 str Pending, Running, Succeeded, Failed or Unknown.
  conditions 2 [type]PodCondition Whether it is scheduled, initialized, Ready...
  message 3 str Why it is in this phase, for people.
  reason 4 str Why it is in this phase, in one word.
  hostIP 5 str The node's address.
  podIP 6 str Its own address.
  startTime 7 Time When its kubelet took it up.
  containerStatuses 8 []ContainerStatus Each container's state.
  qosClass 9 str Guaranteed, Burstable or BestEffort, by requests and limits.
  initContainerStatuses 10 []ContainerStatus Each init container's state.
  nominatedNodeName 11 str Where room is being made for it by preemption.
PodCondition One judgement on a Pod.
  type 1 str PodScheduled, Initialized, ContainersReady, Ready, DisruptionTarget...
  status 2 str True, False or Unknown.
  lastProbeTime 3 Time When it was last probed.
  lastTransitionTime 4 Time When the status last changed.
  reason 5 str Why, in one word.
  message 6 str Why, for people.
ContainerStatus How a container stands.
  name 1 str The container.
  ready 4 bool Whether it is ready.
  restartCount 5 int How often it was started again.
  image 6 str The image that runs.
  imageID 7 str The image's digest.
  containerID 8 str Its id at the runtime.
  started 9 bool? Whether its start-up probe has succeeded.
Container One program in a Pod.
  name 1 str Its name within the Pod.
  image 2 str The image to run.
  command 3 []str Replaces the image's entry point.
  args 4 []str Arguments of the entry point.
  workingDir 5 str Where it starts.
  ports 6 [containerPort]ContainerPort Ports that it listens on.
  env 7 [name]EnvVar Its environment.
  resources 8 ResourceRequirements What it asks for and may use.
  volumeMounts 9 [mountPath]VolumeMount Where volumes appear in it.
  livenessProbe 10 Probe If this fails it is restarted.
  readinessProbe 11 Probe While this fails it is not ready.
  terminationMessagePath 13 str File with its last words.
  imagePullPolicy 14 str Always, Never or IfNotPresent.
  securityContext 15 SecurityContext Its rights and user.
  stdin 16 bool Keeps its standard input open.
  stdinOnce 17 bool Closes it after the first attachment.
  tty 18 bool Gives it a terminal.
  terminationMessagePolicy 20 str Where its last words come from.
  startupProbe 22 Probe Until this succeeds the other probes wait.
  restartPolicy 24 str? Always makes an init container one that stays.
ContainerPort A port of a container.
  name 1 str Its name.
  hostPort 2 int The node's port that leads to it.
  containerPort 3 int The port.
  protocol 4 str TCP, UDP or SCTP.
  hostIP 5 str The node's address for it.
EnvVar A variable of the environment.
  name 1 str Its name.
  value 2 str Its value.
  valueFrom 3 EnvVarSource Where its value comes from.
EnvVarSource Where a variable's value comes from.
  fieldRef 1 ObjectFieldSelector A field of the Pod.
  configMapKeyRef 3 KeySelector An entry of a ConfigMap.
  secretKeyRef 4 KeySelector An entry of a Secret.
ObjectFieldSelector A field of an object.
  apiVersion 1 str API version of the path.
  fieldPath 2 str The field.
KeySelector An entry of a ConfigMap or Secret.
  - 1 LocalObjectReference
  key 2 str The entry.
  optional 3 bool? Whether it may be missing.
ResourceRequirements What a container asks for and may use.
  limits 1 {}Quantity The most that it may use.
  requests 2 {}Quantity What the scheduler sets aside for it.
VolumeMount Where a volume appears in a container.
  name 1 str The volume.
  readOnly 2 bool Whether it cannot be written.
  mountPath 3 str Where.
  subPath 4 str Which part of the volume.
  mountPropagation 5 str Whether mounts within it spread.
  subPathExpr 6 str As subPath, with variables.
Probe How the kubelet learns of a container's health.
  - 1 ProbeHandler
  initialDelaySeconds 2 int Before the first, in seconds.
  timeoutSeconds 3 int For each, in seconds.
  periodSeconds 4 int Between two, in seconds.
  successThreshold 5 int Successes in a row that count as one.
  failureThreshold 6 int Failures in a row that count as one.
  terminationGracePeriodSeconds 7 int? Grace period after a failure, in seconds.
ProbeHandler What a probe does.
  exec 1 ExecAction Runs a program.
  httpGet 2 HTTPGetAction Asks for a page.
  tcpSocket 3 TCPSocketAction Connects to a port.
ExecAction A program to run.
  command 1 []str The program and its arguments.
HTTPGetAction A page to ask for.
  path 1 str Its path.
  port 2 IntOrString The port or its name.
  host 3 str The host, if it is not the Pod.
  scheme 4 str HTTP or HTTPS.
TCPSocketAction A port to connect to.
  port 1 IntOrString The port or its name.
  host 2 str The host, if it is not the Pod.
SecurityContext A container's rights and user.
  capabilities 1 Capabilities Capabilities of the kernel.
  privileged 2 bool? Whether it has all rights on the node.
  runAsUser 4 int? Its user id.
  runAsNonRoot 5 bool? Whether it must not run as root.
  readOnlyRootFilesystem 6 bool? Whether its files cannot be written.
  allowPrivilegeEscalation 7 bool? Whether it may gain rights.
  runAsGroup 8 int? Its group id.
  seccompProfile 11 SeccompProfile Which system calls it may make.
Capabilities Capabilities of the kernel.
  add 1 []str Those to add.
  drop 2 []str Those to take away.
SeccompProfile Which system calls are allowed.
  type 1 str RuntimeDefault, Localhost or Unconfined.
  localhostProfile 2 str? The file of a profile on the node.
PodSecurityContext Rights and users of all containers of a Pod.
  runAsUser 2 int? User id.
  runAsNonRoot 3 bool? Whether they must not run as root.
  supplementalGroups 4 []int Further groups.
  fsGroup 5 int? Group that owns the volumes.
  runAsGroup 6 int? Group id.
  seccompProfile 10 SeccompProfile Which system calls they may make.
Volume Storage for a Pod.
  name 1 str Its name within the Pod.
  - 2 VolumeSource
VolumeSource Where a volume comes from.
  hostPath 1 HostPathVolumeSource A path of the node.
  emptyDir 2 EmptyDirVolumeSource An empty folder that goes with the Pod.
  secret 6 SecretVolumeSource A Secret's entries as files.
  persistentVolumeClaim 10 ClaimVolumeSource A PersistentVolumeClaim.
  configMap 19 ConfigMapVolumeSource A ConfigMap's entries as files.
HostPathVolumeSource A path of the node.
  path 1 str The path.
  type 2 str? What must be there.
EmptyDirVolumeSource An empty folder that goes with the Pod.
  medium 1 str Memory, or nothing for the node's disk.
  sizeLimit 2 Quantity The most that it may hold.
SecretVolumeSource A Secret's entries as files.
  secretName 1 str The Secret.
  defaultMode 3 int? Permissions of the files.
  optional 4 bool? Whether it may be missing.
ConfigMapVolumeSource A ConfigMap's entries as files.
  - 1 LocalObjectReference
  defaultMode 3 int? Permissions of the files.
  optional 4 bool? Whether it may be missing.
ClaimVolumeSource A PersistentVolumeClaim of the namespace.
  claimName 1 str The claim.
  readOnly 2 bool Whether it cannot be written.
Affinity Which nodes and which neighbours a Pod wants or shuns.
  nodeAffinity 1 NodeAffinity Nodes, by their labels.
  podAffinity 2 PodAffinity Near which Pods.
  podAntiAffinity 3 PodAffinity Far from which Pods.
NodeAffinity Which nodes a Pod wants.
  requiredDuringSchedulingIgnoredDuringExecution 1 NodeSelector What a node must be.
  preferredDuringSchedulingIgnoredDuringExecution 2 []PreferredSchedulingTerm What it better be.
NodeSelector Nodes of which one term holds.
  nodeSelectorTerms 1 []NodeSelectorTerm The terms.
NodeSelectorTerm Conditions that all must hold.
  matchExpressions 1 []NodeSelectorRequirement On labels.
  matchFields 2 []NodeSelectorRequirement On fields; metadata.name is the only one.
NodeSelectorRequirement A condition on a node.
  key 1 str The label or field.
  operator 2 str In, NotIn, Exists, DoesNotExist, Gt or Lt.
  values 3 []str What it is compared with.
PreferredSchedulingTerm A wish, and how much it counts.
  weight 1 int From 1 to 100.
  preference 2 NodeSelectorTerm The wish.
PodAffinity Near which Pods, or far from which.
  requiredDuringSchedulingIgnoredDuringExecution 1 []PodAffinityTerm What must hold.
  preferredDuringSchedulingIgnoredDuringExecution 2 []WeightedPodAffinityTerm What better holds.
WeightedPodAffinityTerm A wish, and how much it counts.
  weight 1 int From 1 to 100.
  podAffinityTerm 2 PodAffinityTerm The wish.
PodAffinityTerm Pods, and what counts as near.
  labelSelector 1 LabelSelector The Pods.
  namespaces 2 []str Their namespaces; the Pod's own by default.
  topologyKey 3 str Nodes with the same value of this label are one place.
  namespaceSelector 4 LabelSelector Their namespaces, by label.
  matchLabelKeys 5 []str Labels whose values the Pod's own must equal.
  mismatchLabelKeys 6 []str Labels whose values must differ from the Pod's own.
Toleration A taint that does not keep the Pod off.
  key 1 str The taint's key; with none, all.
  operator 2 str Equal or Exists.
  value 3 str The taint's value, for Equal.
  effect 4 str The taint's effect; with none, all.
  tolerationSeconds 5 int? How long a NoExecute taint is borne, in seconds.
TopologySpreadConstraint How even Pods must lie over the values of a node label.
  maxSkew 1 int The largest difference.
  topologyKey 2 str The label.
  whenUnsatisfiable 3 str DoNotSchedule or ScheduleAnyway.
  labelSelector 4 LabelSelector The Pods that are counted.
  minDomains 5 int? Fewer places than this count as none.
  nodeAffinityPolicy 6 str? Whether nodes that affinity rules out count.
  nodeTaintsPolicy 7 str? Whether nodes that taints rule out count.
  matchLabelKeys 8 []str Labels whose values the Pod's own must equal.
Node A machine that Pods run on.
  metadata 1 ObjectMeta
  spec 2 NodeSpec What is wanted of it.
  status 3 NodeStatus How it stands, as its kubelet sees it.
NodeSpec What is wanted of a node.
  podCIDR 1 str Addresses of its Pods.
  providerID 3 str Its name at the cloud.
  unschedulable 4 bool True while it is cordoned: no new Pods.
  taints 5 []Taint What keeps Pods off.
  podCIDRs 7 [set]str Addresses of its Pods.
Taint Keeps Pods off a node unless they tolerate it.
  key 1 str Its key.
  value 2 str Its value.
  effect 3 str NoSchedule, PreferNoSchedule or NoExecute.
  timeAdded 4 Time When it was set.
NodeStatus How a node stands.
  capacity 1 {}Quantity All that it has.
  allocatable 2 {}Quantity What is left for Pods.
  phase 3 str No longer set.
  conditions 4 [type]NodeCondition Whether it is Ready, short of memory...
  addresses 5 [type]NodeAddress Its addresses.
NodeAddress An address of a node.
  type 1 str Hostname, InternalIP...
  address 2 str The address.
NodeCondition One judgement on a node.
  type 1 str Ready, MemoryPressure, DiskPressure, PIDPressure or NetworkUnavailable.
  status 2 str True, False or Unknown.
  lastHeartbeatTime 3 Time When it was last heard of.
  lastTransitionTime 4 Time When the status last changed.
  reason 5 str Why, in one word.
  message 6 str Why, for people.
Namespace A space of names for objects.
  metadata 1 ObjectMeta
  spec 2 NamespaceSpec
  status 3 NamespaceStatus
NamespaceSpec What is wanted of a namespace.
  finalizers 1 []str What has to be done before it may go.
NamespaceStatus How a namespace stands.
  phase 1 str Active or Terminating.
Event Something that happened to an object.
  metadata 1 ObjectMeta
  involvedObject 2 ObjectReference To which.
  reason 3 str What, in one word.
  message 4 str What, for people.
  source 5 EventSource Who says so, in the older form.
  firstTimestamp 6 Time When it first happened.
  lastTimestamp 7 Time When it last happened.
  count 8 int How often.
  type 9 str Normal or Warning.
  eventTime 10 MicroTime When it first happened, more exactly.
  series 11 EventSeries How it went on.
  action 12 str What was done about it.
  related 13 ObjectReference Another object that plays a part.
  reportingComponent 14 str Who says so.
  reportingInstance 15 str Which one of them.
NewEvent Something that happened to an object.
  metadata 1 ObjectMeta
  eventTime 2 MicroTime When it first happened.
  series 3 EventSeries How it went on.
  reportingController 4 str Who says so.
  reportingInstance 5 str Which one of them.
  action 6 str What was done about it.
  reason 7 str What, in one word.
  regarding 8 ObjectReference To which.
  related 9 ObjectReference Another object that plays a part.
  note 10 str What, for people.
  type 11 str Normal or Warning.
  deprecatedSource 12 EventSource Who says so, in the older form.
  deprecatedFirstTimestamp 13 Time When it first happened.
  deprecatedLastTimestamp 14 Time When it last happened.
  deprecatedCount 15 int How often.
EventSeries How an Event went on.
  count 1 int How often.
  lastObservedTime 2 MicroTime When last.
EventSource Who reports an Event.
  component 1 str The program.
  host 2 str Its node.
ConfigMap Entries of text for programs.
  metadata 1 ObjectMeta
  data 2 {}str The entries.
  binaryData 3 {}bytes Entries that are no text.
  immutable 4 bool? Whether it can no longer change.
Secret Entries that are not for everyone.
  metadata 1 ObjectMeta
  data 2 {}bytes The entries, in base64.
  type 3 str What they are for.
  stringData 4 {}str Entries as text; written only.
  immutable 5 bool? Whether it can no longer change.
ServiceAccount Whose rights Pods have.
  metadata 1 ObjectMeta
  secrets 2 [name]ObjectReference Secrets that its Pods may use.
  imagePullSecrets 3 []LocalObjectReference Secrets for image registries.
  automountServiceAccountToken 4 bool? Whether Pods get its token as a file.
Service One address for many Pods. The sandbox stores it; nothing routes.
  metadata 1 ObjectMeta
  spec 2 ServiceSpec
  status 3 ServiceStatus
ServiceStatus How a Service stands.
  loadBalancer 1 LoadBalancerStatus Its load balancer; the sandbox makes none.
LoadBalancerStatus How a load balancer stands.
ServiceSpec Which Pods a Service stands for.
  ports 1 [port]ServicePort Its ports.
  selector 2 {}str Labels of its Pods.
  clusterIP 3 str Its address.
  type 4 str ClusterIP, NodePort, LoadBalancer or ExternalName.
  sessionAffinity 7 str Whether a client stays with one Pod.
  externalName 10 str A name in DNS that it stands for.
  publishNotReadyAddresses 13 bool Whether Pods that are not Ready count.
  clusterIPs 18 []str Its addresses.
ServicePort A port of a Service.
  name 1 str Its name.
  protocol 2 str TCP, UDP or SCTP.
  port 3 int The port.
  targetPort 4 IntOrString The Pods' port, or its name.
  nodePort 5 int The nodes' port.
PersistentVolumeClaim A wish for storage.
  metadata 1 ObjectMeta
  spec 2 PersistentVolumeClaimSpec
  status 3 PersistentVolumeClaimStatus
PersistentVolumeClaimStatus How a claim stands.
  phase 1 str Pending, Bound or Lost.
  accessModes 2 []str How many nodes may mount it.
  capacity 3 {}Quantity How large it is.
PersistentVolumeClaimSpec What storage is wished for.
  accessModes 1 []str How many nodes may mount it.
  resources 2 ResourceRequirements How large.
  volumeName 3 str The volume that it is bound to.
  selector 4 LabelSelector Which volumes suit.
  storageClassName 5 str? Its StorageClass.
  volumeMode 6 str? Filesystem or Block.
PersistentVolume Storage of the cluster. The sandbox stores it; nothing binds it to claims.
  metadata 1 ObjectMeta
  spec 2 PersistentVolumeSpec
  status 3 PersistentVolumeStatus
PersistentVolumeStatus How a volume stands.
  phase 1 str Pending, Available, Bound, Released or Failed.
  message 2 str Why, for people.
  reason 3 str Why, in one word.
PersistentVolumeSpec What the storage is.
  capacity 1 {}Quantity How large.
  accessModes 3 []str How many nodes may mount it.
  claimRef 4 ObjectReference The claim that it is bound to.
  persistentVolumeReclaimPolicy 5 str What becomes of it after its claim.
  storageClassName 6 str Its StorageClass.
  nodeAffinity 9 VolumeNodeAffinity Nodes that can mount it.
VolumeNodeAffinity Nodes that can mount a volume.
  required 1 NodeSelector What a node must be.
Deployment Pods of one template, changed to another in steps.
  metadata 1 ObjectMeta
  spec 2 DeploymentSpec What is wanted.
  status 3 DeploymentStatus What there is.
DeploymentSpec What a Deployment is to keep up.
  replicas 1 int? How many Pods (1).
  selector 2 LabelSelector Which Pods are its own; it cannot change.
  template 3 PodTemplateSpec What its Pods are made from.
  strategy 4 DeploymentStrategy How it changes to another template.
  minReadySeconds 5 int How long a Pod must be Ready to count as available, in seconds.
  revisionHistoryLimit 6 int? How many old ReplicaSets are kept (10).
  paused 7 bool Whether changes of the template wait.
  progressDeadlineSeconds 9 int? Time after which a change counts as stuck, in seconds (600).
DeploymentStrategy How a Deployment changes to another template.
  type 1 str RollingUpdate, or Recreate: all old Pods go first.
  rollingUpdate 2 RollingUpdate Bounds of a rolling update.
RollingUpdate How many Pods may be missing or too many.
  maxUnavailable 1 IntOrString How many may be unavailable, or which share (25%).
  maxSurge 2 IntOrString How many there may be too many, or which share (25%).
DeploymentStatus What there is of a Deployment.
  observedGeneration 1 int The generation that this speaks of.
  replicas 2 int Pods.
  updatedReplicas 3 int Pods of the present template.
  availableReplicas 4 int Pods that are available.
  unavailableReplicas 5 int Pods that are still to become so.
  conditions 6 [type]Condition Available and Progressing.
  readyReplicas 7 int Pods that are Ready.
ReplicaSet A number of Pods of one template.
  metadata 1 ObjectMeta
  spec 2 ReplicaSetSpec What is wanted.
  status 3 ReplicaSetStatus What there is.
ReplicaSetSpec What a ReplicaSet is to keep up.
  replicas 1 int? How many Pods (1).
  selector 2 LabelSelector Which Pods are its own.
  template 3 PodTemplateSpec What its Pods are made from.
  minReadySeconds 4 int How long a Pod must be Ready to count as available, in seconds.
ReplicaSetStatus What there is of a ReplicaSet.
  replicas 1 int Pods.
  fullyLabeledReplicas 2 int Pods with all labels of the template.
  observedGeneration 3 int The generation that this speaks of.
  readyReplicas 4 int Pods that are Ready.
  availableReplicas 5 int Pods that are available.
DaemonSet One Pod on each node that suits.
  metadata 1 ObjectMeta
  spec 2 DaemonSetSpec What is wanted.
  status 3 DaemonSetStatus What there is.
DaemonSetSpec What a DaemonSet is to keep up.
  selector 1 LabelSelector Which Pods are its own.
  template 2 PodTemplateSpec What its Pods are made from.
  updateStrategy 3 UpdateStrategy How it changes to another template.
  minReadySeconds 4 int How long a Pod must be Ready to count as available, in seconds.
  revisionHistoryLimit 6 int? How many old revisions are kept.
DaemonSetStatus What there is of a DaemonSet.
  currentNumberScheduled 1 int Nodes that run a Pod and should.
  numberMisscheduled 2 int Nodes that run a Pod and should not.
  desiredNumberScheduled 3 int Nodes that should run a Pod.
  numberReady 4 int Pods that are Ready.
  observedGeneration 5 int The generation that this speaks of.
  updatedNumberScheduled 6 int Pods of the present template.
  numberAvailable 7 int Pods that are available.
  numberUnavailable 8 int Pods that are still to become so.
UpdateStrategy How a set changes to another template.
  type 1 str RollingUpdate or OnDelete.
StatefulSet Pods with names and storage of their own, in order.
  metadata 1 ObjectMeta
  spec 2 StatefulSetSpec What is wanted.
  status 3 StatefulSetStatus What there is.
StatefulSetSpec What a StatefulSet is to keep up.
  replicas 1 int? How many Pods (1).
  selector 2 LabelSelector Which Pods are its own.
  template 3 PodTemplateSpec What its Pods are made from.
  volumeClaimTemplates 4 []PersistentVolumeClaim Claims for every Pod; the sandbox makes none.
  serviceName 5 str The Service that names its Pods.
  podManagementPolicy 6 str OrderedReady, or Parallel: without waiting for each other.
  updateStrategy 7 UpdateStrategy How it changes to another template.
  revisionHistoryLimit 8 int? How many old revisions are kept.
  minReadySeconds 9 int How long a Pod must be Ready to count as available, in seconds.
  persistentVolumeClaimRetentionPolicy 10 ClaimRetentionPolicy What becomes of the claims.
ClaimRetentionPolicy What becomes of a StatefulSet's claims: Retain or Delete.
  whenDeleted 1 str When the set is deleted.
  whenScaled 2 str When the set shrinks.
StatefulSetStatus What there is of a StatefulSet.
  observedGeneration 1 int The generation that this speaks of.
  replicas 2 int Pods.
  readyReplicas 3 int Pods that are Ready.
  currentReplicas 4 int Pods of the former template.
  updatedReplicas 5 int Pods of the present template.
  currentRevision 6 str The former template.
  updateRevision 7 str The present template.
  availableReplicas 11 int Pods that are available.
Job Pods that are to come to an end.
  metadata 1 ObjectMeta
  spec 2 JobSpec What is wanted.
  status 3 JobStatus What there is.
JobSpec What a Job is to bring to an end.
  parallelism 1 int? How many Pods at a time (1).
  completions 2 int? How many must succeed (1).
  activeDeadlineSeconds 3 int? Time after which it is failed, in seconds.
  selector 4 LabelSelector Which Pods are its own; set by the server.
  manualSelector 5 bool? Whether the selector is the author's.
  template 6 PodTemplateSpec What its Pods are made from.
  podReplacementPolicy 14 str? Whether a terminating Pod is replaced, or only one that has ended.
  backoffLimit 7 int? How many Pods may fail (6).
  ttlSecondsAfterFinished 8 int? How long it stays after its end, in seconds.
  completionMode 9 str? NonIndexed or Indexed.
  suspend 10 bool? Whether it has no Pods for now.
JobStatus What there is of a Job.
  conditions 1 [type]JobCondition Complete or Failed.
  startTime 2 Time When it began.
  completionTime 3 Time When it succeeded.
  active 4 int Pods that have not ended.
  succeeded 5 int Pods that succeeded.
  failed 6 int Pods that failed.
  completedIndexes 7 str Numbers of the Pods that succeeded, of an Indexed one.
  ready 9 int? Pods that are Ready.
JobCondition One judgement on a Job.
  type 1 str Complete, Failed or Suspended.
  status 2 str True, False or Unknown.
  lastProbeTime 3 Time When it was last looked at.
  lastTransitionTime 4 Time When the status last changed.
  reason 5 str Why, in one word.
  message 6 str Why, for people.
PodDisruptionBudget How many Pods may be taken away on purpose at a time.
  metadata 1 ObjectMeta
  spec 2 PodDisruptionBudgetSpec What is wanted.
  status 3 PodDisruptionBudgetStatus What there is.
PodDisruptionBudgetSpec Which Pods are guarded, and how.
  minAvailable 1 IntOrString How many must stay healthy, or which share.
  selector 2 LabelSelector The Pods; an empty one means all of the namespace.
  maxUnavailable 3 IntOrString How many may be missing, or which share.
  unhealthyPodEvictionPolicy 4 str? When unready Pods may go: IfHealthyBudget or AlwaysAllow.
PodDisruptionBudgetStatus How a budget stands.
  observedGeneration 1 int The generation that this speaks of.
  disruptedPods 2 {}Time Evicted Pods whose deletion has not been seen.
  disruptionsAllowed 3 int How many more may be evicted now.
  currentHealthy 4 int Healthy Pods.
  desiredHealthy 5 int Healthy Pods that must stay.
  expectedPods 6 int Pods in all.
  conditions 7 [type]Condition DisruptionAllowed.
Eviction A request to delete a Pod if its budget allows.
  metadata 1 ObjectMeta Name and namespace of the Pod.
  deleteOptions 2 DeleteOptions How it is to be deleted.
DeleteOptions How an object is to be deleted.
  gracePeriodSeconds 1 int? Time until it is gone, in seconds; 0 for at once.
  preconditions 2 Preconditions What must hold.
  orphanDependents 3 bool? An older form of propagationPolicy.
  propagationPolicy 4 str? Orphan, Background or Foreground.
  dryRun 5 []str All, to change nothing.
Preconditions What must hold for a deletion.
  uid 1 str? The object's UID.
  resourceVersion 2 str? The object's version.
Binding Assigns a Pod to a node.
  metadata 1 ObjectMeta Name of the Pod.
  target 2 ObjectReference The node.
Lease Who holds something, and until when.
  metadata 1 ObjectMeta
  spec 2 LeaseSpec
LeaseSpec The holder and the times.
  holderIdentity 1 str? Who holds it.
  leaseDurationSeconds 2 int? How long it holds without being renewed, in seconds.
  acquireTime 3 MicroTime When it was taken.
  renewTime 4 MicroTime When it was last renewed.
  leaseTransitions 5 int? How often it changed hands.
PriorityClass A name for a priority of Pods.
  metadata 1 ObjectMeta
  value 2 int The priority; higher goes first.
  globalDefault 3 bool Whether Pods without a class get this one.
  description 4 str What it is for.
  preemptionPolicy 5 str? Whether its Pods may preempt others.
SelfSubjectAccessReview A question whether the caller may do something.
  metadata 1 ObjectMeta
  spec 2 SelfSubjectAccessReviewSpec The question.
  status 3 SubjectAccessReviewStatus The answer.
SubjectAccessReviewStatus Whether it may be done.
  allowed 1 bool Whether it may.
  reason 2 str Why.
  evaluationError 3 str What went wrong with finding out.
  denied 4 bool Whether it is forbidden, whatever else allows it.
SelfSubjectAccessReviewSpec What may be done, or not.
  resourceAttributes 1 ResourceAttributes On objects.
  nonResourceAttributes 2 NonResourceAttributes On other paths.
ResourceAttributes A request for objects.
  namespace 1 str Where.
  verb 2 str What.
  group 3 str Of which API group.
  version 4 str Of which version.
  resource 5 str Of which resource.
  subresource 6 str Which part.
  name 7 str Which object.
NonResourceAttributes A request for another path.
  path 1 str The path.
  verb 2 str What.
SelfSubjectRulesReview A question what the caller may do in a namespace.
  metadata 1 ObjectMeta
  spec 2 SelfSubjectRulesReviewSpec The question.
  status 3 SubjectRulesReviewStatus The answer.
SubjectRulesReviewStatus What may be done.
  incomplete 3 bool Whether there may be more.
  evaluationError 4 str What went wrong with finding out.
SelfSubjectRulesReviewSpec Where.
  namespace 1 str The namespace.
SelfSubjectReview A question who the caller is.
  metadata 1 ObjectMeta
  status 2 SelfSubjectReviewStatus The answer.
SelfSubjectReviewStatus Who the caller is.
  userInfo 1 UserInfo The caller.
UserInfo A user.
  username 1 str The name.
  uid 2 str The UID.
  groups 3 []str The groups.
"""

TYPES = _read(_TABLE)


def type_of(api_version: str, kind: str) -> Type | None:
    """The type of a kind; Events have one in each of their two groups."""
    if (api_version, kind) == ("events.k8s.io/v1", "Event"):
        return TYPES["NewEvent"]
    return TYPES.get(kind)
