package metrics

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// trustReader is how long somebody who was allowed to read metrics is not asked about again.
	trustReader = time.Minute

	// mostReaders bounds the readers that are remembered.
	mostReaders = 64

	// reviewTimeout bounds the wait for the API server; a scrape has 10 s by default.
	reviewTimeout = 10 * time.Second
)

// Protected lets those read metrics whose bearer token the API server knows, and whom it allows to get the path: by a
// ClusterRole for nonResourceURLs. The process needs the right to create TokenReviews and SubjectAccessReviews.
//
// The filter that comes with controller-runtime does the same with the API server's own libraries, which would make up half
// of the program and 14 MiB of its resident memory.
func Protected(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the review of tokens: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the review of access: %w", err)
	}
	reviewer := newReviewer(authentication.TokenReviews(), authorization.SubjectAccessReviews(), clock.RealClock{})
	return reviewer.filter, nil
}

// reviewer asks the API server who may read metrics.
type reviewer struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	allowed *lru.Cache // time of the review, by readerKey
	clock   clock.PassiveClock
}

// readerKey is a hash: a token must not lie about in memory for longer than its request takes.
type readerKey [sha256.Size]byte

func newReviewer(
	tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface,
	clock clock.PassiveClock,
) *reviewer {
	return &reviewer{tokens: tokens, access: access, allowed: lru.New(mostReaders), clock: clock}
}

func (r *reviewer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
		defer cancel()
		status, err := r.review(ctx, request)
		if err != nil {
			log.Error(err, "cannot find out who may read metrics")
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, request)
	}), nil
}

// review returns the HTTP status to answer with: 200 for a reader who may read.
func (r *reviewer) review(ctx context.Context, request *http.Request) (int, error) {
	token, found := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		return http.StatusUnauthorized, nil
	}
	verb, path := strings.ToLower(request.Method), request.URL.Path
	reader := readerKey(sha256.Sum256([]byte(verb + " " + path + " " + token)))
	if at, known := r.allowed.Get(reader); known && r.clock.Since(at.(time.Time)) < trustReader {
		return http.StatusOK, nil
	}
	who, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("cannot review a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Status.User.Username, UID: who.Status.User.UID, Groups: who.Status.User.Groups,
		Extra:                 extraOf(who.Status.User),
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("cannot review the access of %s: %w", who.Status.User.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	r.allowed.Add(reader, r.clock.Now())
	return http.StatusOK, nil
}

// extraOf carries over what the authenticator says beside name and groups; the two APIs have types of their own for it.
func extraOf(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return extra
}
