package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/internal/subpool"
)

// TestCFG01CredentialWatch: what was read holds as long as the watch says so, and every other word of it is told.
func TestCFG01CredentialWatch(t *testing.T) {
	at := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	told := 0
	watch := &credentialWatch{notify: func() { told++ }, read: &credentials{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}}
	holds := func() bool {
		_, holds := watch.current()
		return holds
	}
	require.False(t, holds(), "the watch has said nothing yet")
	require.NoError(t, watch.Replace([]any{at("7")}, "9"))
	require.True(t, holds())
	require.Zero(t, told, "that is known")
	require.NoError(t, watch.Update(at("10")))
	require.False(t, holds())
	require.Equal(t, 1, told)
	watch.remember(&credentials{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}})
	require.True(t, holds(), "read again")
	require.NoError(t, watch.Delete(at("11")))
	require.False(t, holds())
	require.NoError(t, watch.Add(at("12")))
	require.False(t, holds())
	require.NoError(t, watch.Replace(nil, "13"))
	require.False(t, holds(), "gone while the watch was down")
	require.Equal(t, 4, told)
}

// No value outlives the look at it.
func TestCredentialsKeepNoValue(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "subpool-credentials", UID: "1", Annotations: map[string]string{"copy": "secret"}},
		Data:       map[string][]byte{subpool.KeyCPAClient: []byte("secret"), subpool.KeyCPAMPAdmin: {}},
	}
	kept := credentialsOf(secret)
	require.Equal(t, []string{subpool.KeyCPAManagement, subpool.KeyCPAMPAdmin}, kept.empty)
	require.Empty(t, kept.Annotations)
	require.NotContains(t, kept.String(), "secret")
}
