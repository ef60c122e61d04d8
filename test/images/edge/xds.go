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
		s := session{node: node, store: known, changed: changed, log: log}
		if err := s.run(ctx, connection); ctx.Err() == nil {
			log.Warn("the controller is out of reach, the last configuration stays in force", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}

// session is one stream of changes from the controller.
type session struct {
	node    *corev3.Node
	store   *store
	changed func(*store)
	log     *slog.Logger

	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	// subscribed holds the names that were asked for, by type.
	subscribed map[string]map[string]bool
}

func (s *session) run(ctx context.Context, connection grpc.ClientConnInterface) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if s.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx); err != nil {
		return err
	}
	s.subscribed = map[string]map[string]bool{}
	// Without names these mean all resources of their type.
	for _, kind := range []string{clusterType, listenerType} {
		if err := s.subscribe(kind, nil); err != nil {
			return err
		}
	}
	for {
		if err := s.subscribeToNamed(); err != nil {
			return err
		}
		response, err := s.stream.Recv()
		if err != nil {
			return err
		}
		if err := s.apply(response); err != nil {
			return err
		}
	}
}

// apply takes over what the controller sent, all or nothing, and tells it which.
func (s *session) apply(response *discoveryv3.DeltaDiscoveryResponse) error {
	answer := &discoveryv3.DeltaDiscoveryRequest{Node: s.node, TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
	if err := s.store.apply(response); err != nil {
		s.log.Error("a configuration is refused", "type", response.GetTypeUrl(), "error", err)
		answer.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
	} else {
		s.changed(s.store.snapshot())
	}
	return s.stream.Send(answer)
}

// subscribeToNamed asks for what the listeners and clusters refer to by name.
func (s *session) subscribeToNamed() error {
	for kind, names := range s.store.references() {
		if maps.Equal(names, s.subscribed[kind]) {
			continue
		}
		if err := s.subscribe(kind, names); err != nil {
			return err
		}
	}
	return nil
}

// subscribe changes the names that the controller sends of one type. The first time on a stream it also tells what is
// known from an earlier one, so that the controller says what has gone.
func (s *session) subscribe(kind string, names map[string]bool) error {
	before, again := s.subscribed[kind]
	request := &discoveryv3.DeltaDiscoveryRequest{Node: s.node, TypeUrl: kind}
	if !again {
		request.InitialResourceVersions = s.store.versions(kind)
	}
	request.ResourceNamesSubscribe = missing(names, before)
	request.ResourceNamesUnsubscribe = missing(before, names)
	s.subscribed[kind] = names
	if err := s.stream.Send(request); err != nil {
		return fmt.Errorf("subscribe to %s: %w", kind, err)
	}
	return nil
}

// missing returns the names of one set that another lacks.
func missing(from, in map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(name string) bool { return in[name] })
}
