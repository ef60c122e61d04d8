package usage

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/test/harness"
)

// scraperName is what the scraper's account and its binding are called.
const scraperName = "sizing-scraper"

// Scraper reads the metrics of the operator with the shipped role for that.
type Scraper struct {
	token string
	http  *http.Client
}

// Metrics holds what one scrape has found, by name.
type Metrics map[string]*dto.MetricFamily

// NewScraper makes the scraper's account.
func NewScraper(ctx context.Context, cluster *harness.Cluster) (*Scraper, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: scraperName}}
	if err := cluster.Admin.Create(ctx, account); err != nil {
		return nil, fmt.Errorf("create the scraper's account: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: scraperName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "subpool-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	if err := cluster.Admin.Create(ctx, binding); err != nil {
		return nil, fmt.Errorf("let the scraper read metrics: %w", err)
	}
	token, err := cluster.RequestToken(ctx, account.Namespace, account.Name)
	if err != nil {
		return nil, err
	}
	// The operator makes its own certificate.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // on this machine's loopback
	return &Scraper{token: token, http: &http.Client{Transport: transport}}, nil
}

// Scrape reads the metrics of a process.
func (s *Scraper) Scrape(ctx context.Context, operator *harness.Operator) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+operator.Metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for metrics: the operator answers %s", response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}

// Sum adds the values of all series of a counter or gauge. It is false if there is none yet: many appear only when there is
// something to count.
func (m Metrics) Sum(name string) (float64, bool) {
	family, found := m[name]
	sum := 0.0
	for _, series := range family.GetMetric() {
		sum += series.GetCounter().GetValue() + series.GetGauge().GetValue()
	}
	return sum, found
}
