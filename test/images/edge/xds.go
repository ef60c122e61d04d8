package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// retryDelay is how long a proxy without a controller waits before it asks again. It serves what it knows meanwhile.
const retryDelay = time.Second

// follow keeps a store as the controller has it and hands out a snapshot after each change, until ctx ends.
func follow(ctx context.Context, connection grpc.ClientConnInterface, node *corev3.Node, changed func(*store), log *slog.Logger) {
	known := newStore()
	for ctx.Err() == nil {
		e := exchange{node: node, store: known, changed: changed, log: log}
		if err := e.run(ctx, connection); ctx.Err() == nil {
			log.Warn("the controller is out of reach, the last configuration stays in force", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}

// exchange is one stream of changes from the controller.
type exchange struct {
	node    *corev3.Node
	store   *store
	changed func(*store)
	log     *slog.Logger

	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	// subscribed holds the names that were asked for, by type.
	subscribed map[string]map[string]bool
}

func (e *exchange) run(ctx context.Context, connection grpc.ClientConnInterface) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if e.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx); err != nil {
		return err
	}
	e.subscribed = map[string]map[string]bool{}
	// Without names these mean all resources of their type.
	for _, kind := range []string{clusterType, listenerType} {
		if err := e.subscribe(kind, nil); err != nil {
			return err
		}
	}
	for {
		if err := e.subscribeToNamed(); err != nil {
			return err
		}
		response, err := e.stream.Recv()
		if err != nil {
			return err
		}
		if err := e.apply(response); err != nil {
			return err
		}
	}
}

// apply takes over what the controller sent, all or nothing, and tells it which.
func (e *exchange) apply(response *discoveryv3.DeltaDiscoveryResponse) error {
	answer := &discoveryv3.DeltaDiscoveryRequest{Node: e.node, TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
	if err := e.store.apply(response); err != nil {
		e.log.Error("a configuration is refused", "type", response.GetTypeUrl(), "error", err)
		answer.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
	} else {
		e.changed(e.store.snapshot())
	}
	return e.stream.Send(answer)
}

// subscribeToNamed asks for what the listeners and clusters refer to by name.
func (e *exchange) subscribeToNamed() error {
	for kind, names := range e.store.references() {
		if maps.Equal(names, e.subscribed[kind]) {
			continue
		}
		if err := e.subscribe(kind, names); err != nil {
			return err
		}
	}
	return nil
}

// subscribe changes the names that the controller sends of one type. The first time on a stream it also tells what is
// known from an earlier one, so that the controller says what has gone.
func (e *exchange) subscribe(kind string, names map[string]bool) error {
	before, again := e.subscribed[kind]
	request := &discoveryv3.DeltaDiscoveryRequest{Node: e.node, TypeUrl: kind}
	if !again {
		request.InitialResourceVersions = e.store.versions(kind)
	}
	request.ResourceNamesSubscribe = missing(names, before)
	request.ResourceNamesUnsubscribe = missing(before, names)
	e.subscribed[kind] = names
	if err := e.stream.Send(request); err != nil {
		return fmt.Errorf("subscribe to %s: %w", kind, err)
	}
	return nil
}

// missing returns the names of one set that another lacks.
func missing(from, in map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(name string) bool { return in[name] })
}
