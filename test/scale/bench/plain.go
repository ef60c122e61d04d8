package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
	"github.com/example-org/subrelay-operator/test/scale/internal/subject"
)

// plainAgent is the user agent of plain writes.
const plainAgent = "benchmark-plain"

// plain writes the objects of a pool one after the other, with client-go and nothing else: the physical limit.
type plain struct {
	verb    string // create or apply
	workers int

	cluster   *harness.Cluster
	blueprint *objects.Blueprint
	client    dynamic.Interface
}

func plainSubjects() []subject.Subject {
	var all []subject.Subject
	for _, verb := range []string{"create", "apply"} {
		for _, workers := range []int{4, 8, 16} {
			all = append(all, &plain{verb: verb, workers: workers})
		}
	}
	return all
}

// Name includes report.Reference.
func (p *plain) Name() string { return fmt.Sprintf("plain %s, %d workers", p.verb, p.workers) }

func (p *plain) Start(ctx context.Context, cluster *harness.Cluster) (err error) {
	p.cluster = cluster
	config := rest.CopyConfig(cluster.Config)
	config.UserAgent = plainAgent
	if p.client, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	p.blueprint, err = objects.ReadBlueprint(ctx, cluster)
	return err
}

func (p *plain) Make(ctx context.Context, poolID string) error {
	parts, err := p.blueprint.Pool(poolID)
	if err != nil {
		return err
	}
	keys, err := objects.Keys(p.cluster.Admin.RESTMapper(), parts)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if err := p.write(ctx, keys[i], part); err != nil {
			return fmt.Errorf("%s %s %s: %w", p.verb, part.GetKind(), part.GetName(), err)
		}
	}
	return nil
}

func (p *plain) write(ctx context.Context, key objects.Key, part *unstructured.Unstructured) (err error) {
	// An empty namespace stands for a resource that has none.
	client := p.client.Resource(key.Resource).Namespace(key.Namespace)
	if p.verb == "create" {
		_, err = client.Create(ctx, part, metav1.CreateOptions{FieldManager: plainAgent})
		return err
	}
	_, err = client.Apply(ctx, key.Name, part, metav1.ApplyOptions{FieldManager: plainAgent, Force: true})
	return err
}

func (p *plain) Workers() int         { return p.workers }
func (p *plain) Processes() []int     { return nil }
func (p *plain) UserAgents() []string { return []string{plainAgent} }
func (p *plain) Stop() error          { return nil }
