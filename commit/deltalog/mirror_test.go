package deltalog

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func TestAppendsBecomeVersions(t *testing.T) {
	b := newBench(t, idSchema(), nil)
	m := b.mirror()
	b.append(10, 20)
	s := b.catchUp(m)
	require.Equal(t, int64(0), s.Version)
	require.Equal(t, 1, s.Written)
	b.append(5)
	b.append(6)
	s = b.catchUp(m)
	require.Equal(t, int64(2), s.Version)
	require.Zero(t, s.Lag)
	require.Empty(t, s.Held)
	require.Equal(t, b.table().CurrentSnapshot().SnapshotID, s.SnapshotID)
	require.Equal(t, int64(3), s.Sequence)
	b.requireEqual()
	t.Log("\n" + b.version(0) + b.version(1))
}
