package operatorconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"sigs.k8s.io/yaml"
)

// hashLength is how much of the content's SHA-256, in hex, tells two configurations apart.
const hashLength = 16

// Parse reads a configuration document, fills in defaults and checks it. The error names every
// field that is wrong and what it should be.
func Parse(document []byte) (*Config, error) {
	config := &Config{}
	if err := yaml.UnmarshalStrict(document, config); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", Key, err)
	}
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return config, nil
}

// Hash identifies the content of a configuration document.
func Hash(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])[:hashLength]
}
