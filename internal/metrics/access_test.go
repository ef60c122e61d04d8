package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// reviews answers like an API server that knows the tokens "scraper" and "stranger", of whom only the first may get /metrics.
func reviews(asked *int) *fake.Clientset {
	server := fake.NewClientset()
	server.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*asked++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		switch review.Spec.Token {
		case "broken":
			return true, nil, errors.New("no answer")
		case "scraper", "stranger", "half-broken":
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{
				Username: review.Spec.Token, UID: "7", Groups: []string{"readers"},
				Extra: map[string]authenticationv1.ExtraValue{"scopes": {"all"}},
			}
		}
		return true, review, nil
	})
	server.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*asked++
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		if review.Spec.User == "half-broken" {
			return true, nil, errors.New("no answer")
		}
		asks := *review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "scraper" && review.Spec.UID == "7" && review.Spec.Groups[0] == "readers" &&
			review.Spec.Extra["scopes"][0] == "all" && asks == authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"}
		return true, review, nil
	})
	return server
}

func TestProtected(t *testing.T) {
	asked := 0
	server := reviews(&asked)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	reviewer := newReviewer(server.AuthenticationV1().TokenReviews(), server.AuthorizationV1().SubjectAccessReviews(), clock)
	protected, err := reviewer.filter(testr.New(t), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	require.NoError(t, err)
	for _, step := range []struct {
		what, method, path, authorization string
		want, asks                        int
		after                             time.Duration
	}{
		{"no token", http.MethodGet, "/metrics", "", http.StatusUnauthorized, 0, 0},
		{"an empty token", http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized, 0, 0},
		{"a password", http.MethodGet, "/metrics", "Basic c2NyYXBlcg==", http.StatusUnauthorized, 0, 0},
		{"an unknown token", http.MethodGet, "/metrics", "Bearer guess", http.StatusUnauthorized, 1, 0},
		{"a reader without the right", http.MethodGet, "/metrics", "Bearer stranger", http.StatusForbidden, 2, 0},
		{"and again", http.MethodGet, "/metrics", "Bearer stranger", http.StatusForbidden, 2, 0},
		{"no answer to the token", http.MethodGet, "/metrics", "Bearer broken", http.StatusInternalServerError, 1, 0},
		{"no answer to the access", http.MethodGet, "/metrics", "Bearer half-broken", http.StatusInternalServerError, 2, 0},
		{"a reader", http.MethodGet, "/metrics", "Bearer scraper", http.StatusOK, 2, 0},
		{"the same within the minute", http.MethodGet, "/metrics", "Bearer scraper", http.StatusOK, 0, trustReader - 1},
		{"another path", http.MethodGet, "/debug", "Bearer scraper", http.StatusForbidden, 2, 0},
		{"another verb", http.MethodPost, "/metrics", "Bearer scraper", http.StatusForbidden, 2, 0},
		{"after the minute", http.MethodGet, "/metrics", "Bearer scraper", http.StatusOK, 2, 1},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		before := asked
		request := httptest.NewRequestWithContext(t.Context(), step.method, step.path, http.NoBody)
		request.Header.Set("Authorization", step.authorization)
		answer := httptest.NewRecorder()
		protected.ServeHTTP(answer, request)
		require.Equal(t, step.want, answer.Code, step.what)
		require.Equal(t, step.asks, asked-before, step.what)
		require.NotContains(t, answer.Body.String(), "scraper", step.what)
	}
}
