package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/audit"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
	"github.com/example-org/subrelay-operator/test/scale/internal/presence"
	"github.com/example-org/subrelay-operator/test/scale/internal/site"
	"github.com/example-org/subrelay-operator/test/scale/internal/subject"
	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

// What counts as idle. The subject's share covers the renewals of its Lease.
const (
	idleSpan     = 5 * time.Second
	idleServer   = 0.08
	idleSubject  = 0.05
	idlePatience = 30 * time.Minute
)

const (
	// controllerManager is a program and what its user agents begin with.
	controllerManager = "kube-controller-manager"

	// kindsPatience is four of its looks for new kinds.
	kindsPatience = 2 * time.Minute
)

// patience is how long something may take that takes the longer the more pools there are.
func patience(pools int) time.Duration { return 5*time.Minute + time.Duration(pools)*time.Second }

// stage is a fresh control plane with one subject on it.
type stage struct {
	*site.Site
	subject   subject.Subject
	blueprint *objects.Blueprint
	watch     *presence.Watch
	endWatch  context.CancelFunc
	// objects is how many a pool has.
	objects int
	// Process ids.
	apiServer, etcd, controllerManager int

	say func(format string, args ...any)
}

func openStage(ctx context.Context, subject subject.Subject) (_ *stage, err error) {
	opened, err := site.Open(ctx, fmt.Sprintf("bench-%d", os.Getpid()))
	if err != nil {
		return nil, err
	}
	watching, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	s := &stage{Site: opened, subject: subject, endWatch: endWatch}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for program, pid := range map[string]*int{
		"kube-apiserver": &s.apiServer, "etcd": &s.etcd, controllerManager: &s.controllerManager,
	} {
		if *pid, err = s.PID(ctx, program); err != nil {
			return nil, err
		}
	}
	if s.blueprint, err = objects.ReadBlueprint(ctx, s.Cluster); err != nil {
		return nil, err
	}
	keys, err := s.keys("any")
	if err != nil {
		return nil, err
	}
	s.objects = len(keys)
	var resources []schema.GroupVersionResource
	seen := map[schema.GroupVersionResource]bool{}
	for _, key := range keys {
		if !seen[key.Resource] {
			resources = append(resources, key.Resource)
		}
		seen[key.Resource] = true
	}
	s.watch, err = presence.Start(watching, s.Config, resources...)
	return s, err
}

// start starts the subject and returns when all is idle.
func (s *stage) start(ctx context.Context) error {
	if err := s.subject.Start(ctx, s.Cluster); err != nil {
		return fmt.Errorf("start %s: %w", s.subject.Name(), err)
	}
	if err := s.awaitKinds(ctx); err != nil {
		return err
	}
	_, err := s.idle(ctx, idleSpan)
	return err
}

// awaitKinds returns when kube-controller-manager watches the objects of every CustomResourceDefinition. It looks for new kinds
// every 30 s. Until it has found one, its garbage collector reads each object anew that has an owner of that kind, which would be
// charged to whoever makes objects right after the start of a cluster.
func (s *stage) awaitKinds(ctx context.Context) error {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := s.Admin.List(ctx, &definitions); err != nil {
		return err
	}
	var unwatched []string
	err := wait.PollUntilContextTimeout(ctx, time.Second, kindsPatience, true, func(ctx context.Context) (bool, error) {
		const wholeLog = harness.Mark(0)
		calls, err := audit.Since(ctx, s.Cluster, wholeLog, []string{controllerManager})
		unwatched = nil
		for _, definition := range definitions.Items {
			resource := definition.Spec.Names.Plural
			if !slices.ContainsFunc(calls, func(call harness.Call) bool {
				return call.Verb == "watch" && call.ObjectRef.Resource == resource && call.OK()
			}) {
				unwatched = append(unwatched, resource)
			}
		}
		return len(unwatched) == 0, err
	})
	if err != nil {
		return fmt.Errorf("await that %s watches %v: %w", controllerManager, unwatched, err)
	}
	return nil
}

// close ends the subject, the watches and the control plane.
func (s *stage) close() error {
	err := s.subject.Stop()
	s.endWatch()
	return errors.Join(err, s.Close())
}

// keys returns where the objects of a pool are.
func (s *stage) keys(poolID string) ([]objects.Key, error) {
	parts, err := s.blueprint.Pool(poolID)
	if err != nil {
		return nil, err
	}
	return objects.Keys(s.Admin.RESTMapper(), parts)
}

// idle returns the beginning of the first span in which the API server and the subject do next to nothing.
func (s *stage) idle(ctx context.Context, span time.Duration) (time.Time, error) {
	calm := usage.Calm{Span: span, Patience: idlePatience, Most: map[int]float64{s.apiServer: idleServer}}
	for _, pid := range s.subject.Processes() {
		calm.Most[pid] = idleSubject
	}
	return calm.Await(ctx)
}

// cpu returns what everybody has taken so far.
func (s *stage) cpu() (report.CPU, error) {
	var cpu report.CPU
	own, err := usage.OfSelf()
	if err != nil {
		return cpu, err
	}
	cpu.Benchmark = own.Seconds()
	add := func(sum *float64, pid int) error {
		used, err := usage.OfProcess(pid)
		*sum += used.CPU.Seconds()
		return err
	}
	errs := []error{
		add(&cpu.APIServer, s.apiServer), add(&cpu.Etcd, s.etcd), add(&cpu.ControllerManager, s.controllerManager),
	}
	for _, pid := range s.subject.Processes() {
		errs = append(errs, add(&cpu.Subject, pid))
	}
	return cpu, errors.Join(errs...)
}

// memory is zero for a subject that is not one process.
func (s *stage) memory() (report.Memory, error) {
	processes := s.subject.Processes()
	if len(processes) != 1 {
		return report.Memory{}, nil
	}
	used, err := usage.OfProcess(processes[0])
	return report.Memory{Resident: used.Resident, Peak: used.Peak}, err
}
