package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// leaseName is the Lease by which the replicas agree on the one that acts.
const leaseName = "subpool-operator"

var (
	errNotLeader = errors.New("this replica does not hold the Lease " + leaseName + " (any more): nothing is written")
	errTaken     = errors.New("the Lease " + leaseName + " is another replica's by now: it is left alone")
)

// leadership is the Lease, and what this process knows of who holds it.
//
// The elector of client-go alone is no fence. A leader that was held up for longer than the Lease lasts first looks at
// the Lease for another renew deadline before it gives up, with its workers at work all the while, and then clears the Lease,
// whose ever it is by then. So nothing is written that is not covered by a renewal, and nobody else's Lease is cleared.
type leadership struct {
	resourcelock.Interface

	// term is how long a renewal covers writes: shorter than the Lease lasts, by what a request may be on its way.
	term time.Duration

	// campaigning is closed when this process first asks for the Lease, which it does with full caches.
	campaigning chan struct{}
	once        sync.Once

	mu     sync.Mutex
	holder string
	until  time.Time
}

func newLeadership(lock resourcelock.Interface, term time.Duration) *leadership {
	return &leadership{Interface: lock, term: term, campaigning: make(chan struct{})}
}

// configure makes a manager act by the Lease.
func (l *leadership) configure(settings *ctrl.Options, e election) {
	settings.LeaderElection = true
	settings.LeaderElectionResourceLockInterface = l
	// The election has its lock; the metric of who leads has its name from here.
	settings.LeaderElectionID = leaseName
	settings.LeaseDuration, settings.RenewDeadline, settings.RetryPeriod = &e.leaseDuration, &e.renewDeadline, &e.retryPeriod
	// The process ends right after, so a successor need not wait for the Lease to run out.
	settings.LeaderElectionReleaseOnCancel = true
}

// Get reads the Lease.
func (l *leadership) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.once.Do(func() { close(l.campaigning) })
	lease, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.holder = lease.HolderIdentity
	}
	return lease, raw, err
}

// Create makes the Lease.
func (l *leadership) Create(ctx context.Context, lease resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, lease, l.Interface.Create)
}

// Update takes, renews or gives up the Lease.
func (l *leadership) Update(ctx context.Context, lease resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, lease, l.Interface.Update)
}

func (l *leadership) write(
	ctx context.Context, lease resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	takes, sent := lease.HolderIdentity == l.Identity(), time.Now()
	if !takes {
		if err := l.resign(); err != nil {
			return err
		}
	}
	if err := send(ctx, lease); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = lease.HolderIdentity
	if takes {
		l.until = sent.Add(l.term)
	}
	return nil
}

// resign ends the writes of this process before another one may begin. It fails if one has.
func (l *leadership) resign() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Time{}
	if l.holder != l.Identity() {
		return errTaken
	}
	return nil
}

func (l *leadership) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder == l.Identity() && time.Now().Before(l.until)
}

// fence lets those requests to the API server through that only read, or that the Lease covers.
func (l *leadership) fence(next http.RoundTripper) http.RoundTripper { return &fence{l, next} }

type fence struct {
	leadership *leadership
	next       http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(request *http.Request) (*http.Response, error) {
	if !writes(request) {
		return f.next.RoundTrip(request)
	}
	if !f.leadership.holds() {
		if request.Body != nil {
			_ = request.Body.Close() // as every RoundTripper must
		}
		return nil, errNotLeader
	}
	if request.Body != nil && request.Body != http.NoBody {
		request = f.guard(request)
	}
	return f.next.RoundTrip(request)
}

// guard returns the request with a body that looks at the Lease once more when it is sent: the process may have slept since the
// request was let through, and a request whose body ends early changes nothing.
func (f *fence) guard(request *http.Request) *http.Request {
	guarded := *request
	guarded.Body = guardedBody{request.Body, f.leadership}
	if request.GetBody != nil {
		guarded.GetBody = func() (io.ReadCloser, error) {
			body, err := request.GetBody()
			return guardedBody{body, f.leadership}, err
		}
	}
	return &guarded
}

type guardedBody struct {
	io.ReadCloser

	leadership *leadership
}

func (b guardedBody) Read(into []byte) (int, error) {
	if !b.leadership.holds() {
		return 0, errNotLeader
	}
	return b.ReadCloser.Read(into)
}

// WrappedRoundTripper lets client-go find the transport, by which it cancels requests.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }

// writes tells whether a request changes something. A replica that only watches has others' rights reviewed, too: of those
// who read its metrics.
func writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	default:
		return !strings.HasPrefix(request.URL.Path, "/apis/authentication.k8s.io/") &&
			!strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/")
	}
}

// newLock returns the Lease in the operator's namespace, for a client of its own that is not fenced. Events tell
// which replica leads. An attempt may take half of the renew deadline, so that one that hangs leaves time for another.
func newLock(restConfig *rest.Config, scheme *runtime.Scheme, namespace string, e election) (resourcelock.Interface, error) {
	config := rest.AddUserAgent(rest.CopyConfig(restConfig), "leader-election")
	config.Timeout = e.renewDeadline / 2
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot tell this replica from others: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(namespace)})
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:    client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{
			Identity:      identity,
			EventRecorder: events.NewRecorder(scheme, corev1.EventSource{Component: identity}),
		},
	}, nil
}
