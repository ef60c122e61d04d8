package subpool

import (
	"encoding/hex"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// Keys of the Secret, and names of the files below /run/secrets.
const (
	KeyCPAClient     = "cpa_client_key"
	KeyCPAManagement = "cpa_management_key"
	KeyCPAMPAdmin    = "cpamp_admin_key"
)

// CredentialKeys are the keys that the Secret must have, none of them empty.
var CredentialKeys = []string{KeyCPAClient, KeyCPAManagement, KeyCPAMPAdmin}

// credentialBytes is the length of a generated key before hex encoding: 256 bits, and 64 characters,
// which stays below the 72 bytes that CPA's password hash can take.
const credentialBytes = 32

// Credentials makes the Secret of a new pool from a source of randomness, which must be a cryptographic
// one. It fails only when the source does.
func Credentials(pool *v1alpha1.SubPool, random io.Reader) (*corev1.Secret, error) {
	data := make(map[string][]byte, len(CredentialKeys))
	for _, key := range CredentialKeys {
		value := make([]byte, credentialBytes)
		if _, err := io.ReadFull(random, value); err != nil {
			return nil, fmt.Errorf("cannot generate credentials: %w", err)
		}
		data[key] = hex.AppendEncode(nil, value)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      CredentialsName,
			Namespace: NamespaceName(pool.Name),
			Labels:    Labels(pool),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(),
				Kind:       "SubPool",
				Name:       pool.Name,
				UID:        pool.UID,
				Controller: ptr.To(true),
			}},
		},
		// Values never change: to have new ones, the Secret is deleted.
		Immutable: ptr.To(true),
		Type:      corev1.SecretTypeOpaque,
		Data:      data,
	}, nil
}
