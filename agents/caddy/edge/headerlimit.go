package edge

import (
	"fmt"

	"edge.svc/caddy/core"
	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

const (
	// Largest field of a header where the cluster does not say, and where it does; what HTTP itself puts around it counts.
	maxFieldBytes   = 8 << 10
	mostFieldBytes  = 64 << 10
	restHeaderBytes = 24 << 10
)

// fieldLimit is the setting of the cluster, in bytes.
var fieldLimit = exchange.NewSetting("header-limit", maxFieldBytes)

func init() {
	core.SettingKind("header-limit", fieldLimit, compileHeaderLimit)
	core.ConfigureKind("header-limit", core.KindOptions{Features: []string{"header-limit-v1"}})
}

func compileHeaderLimit(m *configv1.HeaderLimit) (int, error) {
	bytes := m.GetFieldBytes()
	if bytes < maxFieldBytes || bytes > mostFieldBytes {
		return 0, fmt.Errorf("the limit of %d bytes is not between %d and %d", bytes, maxFieldBytes, mostFieldBytes)
	}
	return int(bytes), nil
}
