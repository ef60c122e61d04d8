package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	// discoveryPause is the first pause before the API server is asked again which kinds it serves: it serves a kind some
	// time after its definition came. The pause doubles up to discoveryRetries times, a bit over a minute in all.
	discoveryPause   = time.Second
	discoveryRetries = 6

	// syncTimeout bounds the wait for the first list of a kind that has just come.
	syncTimeout = 30 * time.Second
)

// definitionKind is that of the definitions of resources, of which only names are read.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// hostIndex finds HTTPRoutes by a host they ask for.
const hostIndex = "host"

// gatewayAPI knows which kinds of the Gateway API the cluster serves, and keeps the controller's watches on them. The
// definitions may be missing when the operator starts, come later, be incomplete, or go.
type gatewayAPI struct {
	cache      cache.Cache
	discovery  discovery.DiscoveryInterface
	controller controller.Controller
	kinds      []gatewayKind

	// changed tells, through source, that other kinds are served than before.
	changed chan event.GenericEvent

	mu     sync.RWMutex
	served map[string]bool
}

// gatewayKind is a kind of the Gateway API and who hears of its objects.
type gatewayKind struct {
	name    string
	object  client.Object
	handler handler.EventHandler
}

func newGatewayAPI(cache cache.Cache, discovery discovery.DiscoveryInterface, kinds ...gatewayKind) *gatewayAPI {
	return &gatewayAPI{cache: cache, discovery: discovery, kinds: kinds, changed: make(chan event.GenericEvent), served: map[string]bool{}}
}

// start finds out what is served before the first pool is looked at.
func (g *gatewayAPI) start(ctx context.Context, controller controller.Controller) error {
	g.controller = controller
	served, err := g.discover()
	if err != nil {
		return err
	}
	for _, kind := range g.kinds {
		if served[kind.name] {
			if err := g.watch(ctx, kind); err != nil {
				return err
			}
			g.set(kind, true)
		}
	}
	return nil
}

// missing are the kinds that the cluster does not serve, sorted.
func (g *gatewayAPI) missing() []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var missing []string
	for _, kind := range g.kinds {
		if !g.served[kind.name] {
			missing = append(missing, kind.name)
		}
	}
	slices.Sort(missing)
	return missing
}

// set comes after each kind's watch, so that a kind that cannot be listed does not have another one watched twice.
func (g *gatewayAPI) set(kind gatewayKind, served bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.served[kind.name] = served
}

// source feeds the changes into a controller.
func (g *gatewayAPI) source(handler handler.EventHandler) source.Source {
	return source.Channel(g.changed, handler)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: the replica that waits is kept as warm as the one that acts.
func (g *gatewayAPI) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it follows the definitions of the Gateway API as they come and go.
func (g *gatewayAPI) Start(ctx context.Context) error {
	definitions := &metav1.PartialObjectMetadata{}
	definitions.SetGroupVersionKind(definitionKind)
	informer, err := g.cache.GetInformer(ctx, definitions)
	if err != nil {
		return fmt.Errorf("cannot watch definitions of resources: %w", err)
	}
	wake := make(chan struct{}, 1)
	notice := func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		definition, ok := object.(metav1.Object)
		if !ok || !strings.HasSuffix(definition.GetName(), "."+gatewayv1.GroupName) {
			return
		}
		select {
		case wake <- struct{}{}:
		default: // somebody is being woken already
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: notice, UpdateFunc: func(_, now any) { notice(now) }, DeleteFunc: notice,
	}); err != nil {
		return fmt.Errorf("cannot watch definitions of resources: %w", err)
	}
	g.follow(ctx, wake)
	return nil
}

// follow looks at what is served after each change of a definition, and a few times more, see discoveryPause.
func (g *gatewayAPI) follow(ctx context.Context, wake <-chan struct{}) {
	var again <-chan time.Time
	retries := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
			retries = 0
		case <-again:
			retries++
		}
		if err := g.refresh(ctx); err != nil {
			log.FromContext(ctx).Error(err, "cannot follow the Gateway API: trying again")
		}
		again = nil
		if retries < discoveryRetries {
			again = time.After(discoveryPause << retries)
		}
	}
}

// refresh starts the watches on kinds that came, and ends those on kinds that went.
func (g *gatewayAPI) refresh(ctx context.Context) error {
	served, err := g.discover()
	if err != nil {
		return err
	}
	missing := g.missing()
	different := false
	var errs []error
	for _, kind := range g.kinds {
		wasServed := !slices.Contains(missing, kind.name)
		if served[kind.name] == wasServed {
			continue
		}
		if wasServed {
			err = g.unwatch(ctx, kind)
		} else {
			err = g.watchNow(ctx, kind)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		different = true
		g.set(kind, served[kind.name])
	}
	if !different {
		return errors.Join(errs...)
	}
	log.FromContext(ctx).Info("the kinds of the Gateway API changed", "missing", g.missing())
	select {
	case g.changed <- event.GenericEvent{Object: &gatewayv1.Gateway{}}:
	case <-ctx.Done():
	}
	return errors.Join(errs...)
}

// discover asks the API server which of the kinds it serves.
func (g *gatewayAPI) discover() (map[string]bool, error) {
	resources, err := g.discovery.ServerResourcesForGroupVersion(gatewayv1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return map[string]bool{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask the API server for the kinds of the Gateway API: %w", err)
	}
	served := map[string]bool{}
	for _, resource := range resources.APIResources {
		served[resource.Kind] = true
	}
	return served, nil
}

// watch lets the controller hear of a kind's objects.
func (g *gatewayAPI) watch(ctx context.Context, kind gatewayKind) error {
	if _, isRoute := kind.object.(*gatewayv1.HTTPRoute); isRoute {
		if err := g.cache.IndexField(ctx, kind.object, hostIndex, routeHosts); err != nil {
			return fmt.Errorf("cannot index HTTPRoutes: %w", err)
		}
	}
	return g.controller.Watch(source.Kind(g.cache, kind.object, kind.handler, contentChanged()))
}

// watchNow is watch for a running controller: it returns when the kind's objects can be read, or changes nothing.
func (g *gatewayAPI) watchNow(ctx context.Context, kind gatewayKind) error {
	if err := g.watch(ctx, kind); err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if _, err := g.cache.GetInformer(timed, kind.object); err != nil {
		return errors.Join(fmt.Errorf("cannot list %s: %w", kind.name, err), g.unwatch(ctx, kind))
	}
	return nil
}

func (g *gatewayAPI) unwatch(ctx context.Context, kind gatewayKind) error {
	if err := g.cache.RemoveInformer(ctx, kind.object); err != nil {
		return fmt.Errorf("cannot end the watch on %s: %w", kind.name, err)
	}
	return nil
}

// routeHosts are the hosts that a route asks for, spelled in one way.
func routeHosts(object client.Object) []string {
	route, ok := object.(*gatewayv1.HTTPRoute)
	if !ok {
		return nil
	}
	hosts := make([]string, 0, len(route.Spec.Hostnames))
	for _, host := range route.Spec.Hostnames {
		hosts = append(hosts, strings.ToLower(string(host)))
	}
	return hosts
}
