// Package v1alpha1 is the SubRelay API: the SubPool kind, its schema rules, and the
// conditions and reasons that its status can carry.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=subrelay.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// SchemeGroupVersion is the API group and version of every kind in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: "subrelay.example.com", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &SubPool{}, &SubPoolList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
