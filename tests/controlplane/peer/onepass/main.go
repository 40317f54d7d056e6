// Command onepass answers cases of the conformance corpus with upstream itself: its policy loader, its
// plugins and its evictor run one pass on a case's objects, over client-go's own fake clients.
//
// It reads one case a line and writes one line an answer. A case may ask for several runs, since some of
// upstream's choices follow Go's random order of maps. What is evicted is told by upstream's log, the only
// place that names the plugin in step.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	fakemetrics "k8s.io/metrics/pkg/client/clientset/versioned/fake"

	"sigs.k8s.io/descheduler/cmd/descheduler/app/options"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/descheduler"
	"sigs.k8s.io/descheduler/pkg/features"
	"sigs.k8s.io/descheduler/pkg/framework/pluginregistry"
)

// seen is how long the informers get to notice an eviction before upstream goes on.
const seen = 3 * time.Millisecond

type testCase struct {
	Name              string                       `json:"name"`
	Now               time.Time                    `json:"now"`
	Policy            json.RawMessage              `json:"policy"`
	Objects           []map[string]any             `json:"objects"`
	NodeMetrics       []metricsv1beta1.NodeMetrics `json:"nodeMetrics"`
	PodMetrics        []metricsv1beta1.PodMetrics  `json:"podMetrics"`
	PrometheusSamples []struct {
		Instance string  `json:"instance"`
		Value    float64 `json:"value"`
	} `json:"prometheusSamples"`
	FeatureGates    map[string]bool `json:"featureGates"`
	EvictionReplies []struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Code      int32  `json:"code"`
		Message   string `json:"message"`
	} `json:"evictionReplies"`
	Runs int `json:"runs"`
}

type eviction struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Plugin    string `json:"plugin"`
	Profile   string `json:"profile"`
}

type answer struct {
	Evicted []eviction `json:"evicted"`
	Failed  []string   `json:"failedPlugins"`
	// Refusal is why upstream does not take the policy.
	Refusal string `json:"error"`
	// Unplayable is why the case says nothing: it cannot be read, or upstream panics on it.
	Unplayable string `json:"unplayable"`
}

var failure = regexp.MustCompile(`plugin "(\w+)" finished with error`)

// journal is the log sink that finds evictions and failures among what upstream says.
type journal struct {
	*sync.Mutex
	evicted []eviction
	failed  map[string]bool
}

func (*journal) Init(logr.RuntimeInfo)            {}
func (*journal) Enabled(int) bool                 { return true }
func (j *journal) WithValues(...any) logr.LogSink { return j }
func (j *journal) WithName(string) logr.LogSink   { return j }

func (j *journal) Info(_ int, message string, pairs ...any) {
	if message != "Evicted pod" {
		return
	}
	values := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	namespace, name, _ := strings.Cut(values["pod"], "/")
	j.Lock()
	defer j.Unlock()
	j.evicted = append(j.evicted, eviction{namespace, name, values["strategy"], values["profile"]})
}

func (j *journal) Error(err error, _ string, _ ...any) {
	if err == nil {
		return
	}
	j.Lock()
	defer j.Unlock()
	for _, match := range failure.FindAllStringSubmatch(err.Error(), -1) {
		j.failed[match[1]] = true
	}
}

func (j *journal) begin() {
	j.Lock()
	defer j.Unlock()
	j.evicted, j.failed = []eviction{}, map[string]bool{}
}

func (j *journal) end() answer {
	j.Lock()
	defer j.Unlock()
	failed := []string{}
	for name := range j.failed {
		failed = append(failed, name)
	}
	slices.Sort(failed)
	return answer{Evicted: slices.Clone(j.evicted), Failed: failed}
}

// prometheus answers every query with a case's samples.
type prometheus struct{ of *testCase }

func (prometheus) URL(path string, _ map[string]string) *url.URL { return &url.URL{Path: path} }

func (p prometheus) Do(context.Context, *http.Request) (*http.Response, []byte, error) {
	result := []map[string]any{}
	for _, each := range p.of.PrometheusSamples {
		result = append(result, map[string]any{
			"metric": map[string]string{"instance": each.Instance},
			"value":  []any{time.Now().Unix(), fmt.Sprint(each.Value)},
		})
	}
	data := map[string]any{"resultType": "vector", "result": result}
	body, err := json.Marshal(map[string]any{"status": "success", "data": data})
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, body, err
}

// shift moves every timestamp, since upstream reads the real clock. Labels and annotations are texts.
func shift(object map[string]any, by time.Duration) {
	for key, value := range object {
		switch typed := value.(type) {
		case string:
			if at, err := time.Parse(time.RFC3339, typed); err == nil {
				object[key] = at.Add(by).UTC().Format(time.RFC3339)
			}
		case map[string]any:
			if key != "labels" && key != "annotations" {
				shift(typed, by)
			}
		case []any:
			for _, each := range typed {
				if inner, ok := each.(map[string]any); ok {
					shift(inner, by)
				}
			}
		}
	}
}

func read(objects []map[string]any, by time.Duration) ([]runtime.Object, error) {
	found := []runtime.Object{}
	for _, each := range objects {
		shift(each, by)
		text, err := json.Marshal(each)
		if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, err
		}
		scheme.Scheme.Default(object)
		found = append(found, object)
	}
	return found, nil
}

// clusterOf holds a case's objects and answers evictions: what goes is terminating at once, or gone where no
// kubelet has to end it.
func clusterOf(c *testCase, objects []runtime.Object) *fake.Clientset {
	// Not NewClientset: to keep track of managed fields takes most of the time, and nobody reads them.
	client := fake.NewSimpleClientset(objects...)
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1", Namespaced: true},
		}},
		{GroupVersion: "policy/v1", APIResources: []metav1.APIResource{
			{Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true},
		}},
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		asked := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		for _, reply := range c.EvictionReplies {
			if reply.Namespace == asked.Namespace && reply.Name == asked.Name {
				return true, nil, refusal(reply.Code, reply.Message)
			}
		}
		object, err := client.Tracker().Get(pods, asked.Namespace, asked.Name)
		if err != nil {
			return true, nil, err
		}
		pod := object.(*corev1.Pod).DeepCopy()
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if ended || pod.Spec.NodeName == "" {
			err = client.Tracker().Delete(pods, asked.Namespace, asked.Name)
		} else {
			now := metav1.Now()
			pod.DeletionTimestamp = &now
			err = client.Tracker().Update(pods, pod, asked.Namespace)
		}
		time.Sleep(seen)
		return true, nil, err
	})
	return client
}

func refusal(code int32, message string) error {
	reasons := map[int32]metav1.StatusReason{
		http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusNotFound:        metav1.StatusReasonNotFound,
		http.StatusForbidden:       metav1.StatusReasonForbidden,
		http.StatusConflict:        metav1.StatusReasonConflict,
	}
	reason, known := reasons[code]
	if !known {
		reason = metav1.StatusReasonInternalError
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: message, Reason: reason,
	}}
}

func load(text []byte, client *fake.Clientset) (*api.DeschedulerPolicy, error) {
	file, err := os.CreateTemp("", "policy-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(text); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	return descheduler.LoadPolicyConfig(file.Name(), client, pluginregistry.PluginRegistry)
}

func measurementsOf(c *testCase) (*fakemetrics.Clientset, error) {
	client := fakemetrics.NewSimpleClientset()
	nodes := metricsv1beta1.SchemeGroupVersion.WithResource("nodes")
	pods := metricsv1beta1.SchemeGroupVersion.WithResource("pods")
	errs := []error{}
	for i := range c.NodeMetrics {
		errs = append(errs, client.Tracker().Create(nodes, &c.NodeMetrics[i], ""))
	}
	for i := range c.PodMetrics {
		each := &c.PodMetrics[i]
		errs = append(errs, client.Tracker().Create(pods, each, each.Namespace))
	}
	return client, errors.Join(errs...)
}

// pass plays a case once. It changes the case's timestamps, so the clock of the next run is the real one.
func pass(c *testCase, told *journal) (found answer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = answer{Unplayable: fmt.Sprint("upstream panics: ", reason)}
		}
	}()
	told.begin()
	now := time.Now()
	objects, err := read(c.Objects, now.Sub(c.Now))
	c.Now = now
	if err != nil {
		return answer{Unplayable: err.Error()}
	}
	client := clusterOf(c, objects)
	policy, err := load(c.Policy, client)
	if err != nil {
		return answer{Refusal: err.Error()}
	}
	server, err := serverOf(c, client)
	if err != nil {
		return answer{Unplayable: err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := descheduler.RunDeschedulerStrategies(ctx, server, policy, "policy/v1"); err != nil {
		return answer{Refusal: err.Error()}
	}
	return told.end()
}

func serverOf(c *testCase, client *fake.Clientset) (*options.DeschedulerServer, error) {
	server, err := options.NewDeschedulerServer()
	if err != nil {
		return nil, err
	}
	gates := features.DefaultMutableFeatureGate.DeepCopy()
	if err := gates.SetFromMap(c.FeatureGates); err != nil {
		return nil, err
	}
	server.DefaultFeatureGates = gates
	server.Client, server.EventClient = client, client
	server.DisableMetrics = true
	// As upstream's own start-up does, only where the policy says that there is a metrics-server.
	if text := string(c.Policy); strings.Contains(text, `"metricsProviders"`) || strings.Contains(text, `"metricsCollector"`) {
		measurements, err := measurementsOf(c)
		if err != nil {
			return nil, err
		}
		server.MetricsClient = measurements
	}
	if c.PrometheusSamples != nil {
		server.PrometheusClient = prometheus{c}
	}
	return server, nil
}

func main() {
	told := &journal{Mutex: &sync.Mutex{}, failed: map[string]bool{}}
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", "1"); err != nil {
		panic(err)
	}
	klog.SetLoggerWithOptions(logr.New(told), klog.ContextualLogger(true))
	descheduler.SetupPlugins()

	lines, answers := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		if err != nil && err != io.EOF {
			panic(err)
		}
		c := &testCase{Runs: 1}
		if err := json.Unmarshal(line, c); err != nil {
			panic(err)
		}
		found := []answer{}
		for range c.Runs {
			found = append(found, pass(c, told))
		}
		if err := answers.Encode(map[string]any{"name": c.Name, "answers": found}); err != nil {
			panic(err)
		}
	}
}
