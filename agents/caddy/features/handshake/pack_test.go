package handshake

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// readOf reads a pack and returns of which certificates it has something else now.
func readOf(t *testing.T, p *pack) (ids []fingerprint) {
	t.Helper()
	if err := p.read(func(id fingerprint) { ids = append(ids, id) }); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestPackIsReadAtItsTail(t *testing.T) {
	dir := t.TempDir()
	p := newPack(filepath.Join(dir, packName))
	if ids := readOf(t, p); len(ids) != 0 || p.problem() != "" {
		t.Error("something was read of no file")
	}
	key := ecdsaKey(t)
	a, b, c := issue(t, key, "a.test"), issue(t, key, "b.test"), issue(t, key, "c.test")
	appendPack(t, dir, framesOf(t, a))
	if readOf(t, p); !p.has(a.ID) || p.has(b.ID) {
		t.Error("a new file is not read")
	}
	appendPack(t, dir, framesOf(t, b))
	appendPack(t, dir, frameStaple(t, a, "good", time.Now()))
	if ids := readOf(t, p); !slices.Equal(ids, []fingerprint{b.ID, a.ID}) {
		t.Errorf("%d", len(ids))
	}
	if material, staple, err := p.get(a.ID); err != nil || !proto.Equal(material, a.Material) || string(staple.GetOcspResponse()) != "good" {
		t.Errorf("%v, %v", staple, err)
	}
	if material, staple, err := p.get(b.ID); err != nil || staple != nil || !proto.Equal(material, b.Material) {
		t.Errorf("%v, %v", staple, err)
	}
	// A later record wins.
	other := proto.CloneOf(b.Material)
	other.CertificateId = "other"
	appendPack(t, dir, frameMaterial(t, &pair{ID: b.ID, Material: other}))
	readOf(t, p)
	if material, _, err := p.get(b.ID); err != nil || material.GetCertificateId() != "other" {
		t.Errorf("%v, %v", material.GetCertificateId(), err)
	}
	// Another file says everything anew.
	replacePack(t, dir, framesOf(t, c))
	if ids := readOf(t, p); len(ids) != 2 || p.has(a.ID) || !p.has(c.ID) || p.size() != 1 {
		t.Error("a replaced file is not read")
	}
	if err := os.Truncate(filepath.Join(dir, packName), 0); err != nil {
		t.Fatal(err)
	}
	if ids := readOf(t, p); !slices.Equal(ids, []fingerprint{c.ID}) || p.size() != 0 {
		t.Error("an emptied file is not read")
	}
	appendPack(t, dir, framesOf(t, a))
	readOf(t, p)
	if err := os.Remove(filepath.Join(dir, packName)); err != nil {
		t.Fatal(err)
	}
	if ids := readOf(t, p); !slices.Equal(ids, []fingerprint{a.ID}) || p.has(a.ID) {
		t.Error("a removed file is still used")
	}
}

// gate holds what reads through it back until it opens.
type gate struct {
	io.ReaderAt
	reached, open chan struct{}
	once          sync.Once
}

func (g *gate) ReadAt(b []byte, at int64) (int, error) {
	g.once.Do(func() { close(g.reached) })
	<-g.open
	return g.ReaderAt.ReadAt(b, at)
}

// While another file is looked through, handshakes go on by the one before.
func TestHandshakesDoNotWaitForAnotherFile(t *testing.T) {
	n := newNode(t, t.TempDir())
	own, later := issue(t, ecdsaKey(t), "a.test"), issue(t, ecdsaKey(t), "b.test")
	n.serve("a", nil, []*pair{own}, "a.test")
	content := slices.Concat(framesOf(t, own, later), frameStaple(t, own, "new", time.Now().Add(time.Hour)))
	replacePack(t, n.dir, content)
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	n.tls.pack.through = func(from io.ReaderAt) io.ReaderAt {
		g.ReaderAt = from
		return g
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.read()
	}()
	<-g.reached
	// Once with nothing parsed, once by what is held, and reports.
	n.mustDial("a.test")
	n.mustDial("a.test")
	if got := n.core.Report().GetTls().GetCertificates(); got != 1 || n.tls.pack.has(later.ID) || n.tls.pack.problem() != "" {
		t.Errorf("%d certificates while another file is read", got)
	}
	close(g.open)
	<-done
	if !n.tls.pack.has(later.ID) || n.tls.pack.size() != 2 {
		t.Error("the other file is not used")
	}
}

// A compacted file holds what there was, in other places: only what it says otherwise is parsed again.
func TestParsedCertificatesOutliveAnotherFile(t *testing.T) {
	key := ecdsaKey(t)
	same, stapled, changed, gone := issue(t, key, "a.test"), issue(t, key, "b.test"), issue(t, key, "c.test"), issue(t, key, "d.test")
	all := []*pair{same, stapled, changed, gone}
	dir := t.TempDir()
	old, until := frameStaple(t, stapled, "old", time.Now()), time.Now().Add(time.Hour)
	appendPack(t, dir, slices.Concat(framesOf(t, all...), frameStaple(t, same, "good", until), old))
	p := newPack(filepath.Join(dir, packName))
	readOf(t, p)
	c := newCache(p, cacheBytes, time.Now)
	before := map[fingerprint]*certificate{}
	for _, one := range all {
		made, err := c.get(one.ID, "name")
		if err != nil {
			t.Fatal(err)
		}
		before[one.ID] = made
	}
	other := proto.CloneOf(changed.Material)
	other.Chain = other.Chain[:1]
	replacePack(t, dir, slices.Concat(
		frameStaple(t, same, "good", until), frameStaple(t, stapled, "new", until),
		frameMaterial(t, &pair{ID: changed.ID, Material: other}), framesOf(t, stapled, same),
	))
	if err := p.read(c.drop); err != nil {
		t.Fatal(err)
	}
	if c.parsed() != 1 {
		t.Errorf("%d are held", c.parsed())
	}
	if made, err := c.get(same.ID, "name"); err != nil || made != before[same.ID] {
		t.Errorf("what did not change was parsed again: %v", err)
	}
	if made, err := c.get(stapled.ID, "name"); err != nil || string(made.stapled.OCSPStaple) != "new" {
		t.Errorf("the staple is the old one: %v", err)
	}
	if made, err := c.get(changed.ID, "name"); err != nil || len(made.plain.Certificate) != 1 {
		t.Errorf("the chain is the old one: %v", err)
	}
	if _, err := c.get(gone.ID, "name"); !errors.Is(err, errNoMaterial) {
		t.Errorf("what is gone: %v", err)
	}
}

func TestTornTailIsReadOnceItIsWhole(t *testing.T) {
	key := ecdsaKey(t)
	a, b := issue(t, key, "a.test"), issue(t, key, "b.test")
	whole := framesOf(t, a, b)
	first := len(framesOf(t, a))
	for cut := first + 1; cut < len(whole); cut += 37 {
		dir := t.TempDir()
		p := newPack(filepath.Join(dir, packName))
		appendPack(t, dir, whole[:cut])
		readOf(t, p)
		if !p.has(a.ID) || p.has(b.ID) || !strings.Contains(p.problem(), "torn") {
			t.Fatalf("cut at %d: %q", cut, p.problem())
		}
		appendPack(t, dir, whole[cut:])
		if ids := readOf(t, p); !slices.Equal(ids, []fingerprint{b.ID}) || p.problem() != "" {
			t.Fatalf("completed at %d: %q", cut, p.problem())
		}
	}
	// The agent cuts what it did not finish, and goes on.
	dir := t.TempDir()
	p := newPack(filepath.Join(dir, packName))
	appendPack(t, dir, whole[:first+20])
	readOf(t, p)
	if err := os.Truncate(filepath.Join(dir, packName), int64(first)); err != nil {
		t.Fatal(err)
	}
	appendPack(t, dir, framesOf(t, b))
	if readOf(t, p); !p.has(b.ID) || p.problem() != "" {
		t.Error(p.problem())
	}
}

func TestDamagedRecordIsLeftOutAlone(t *testing.T) {
	key := ecdsaKey(t)
	a, b, c := issue(t, key, "a.test"), issue(t, key, "b.test"), issue(t, key, "c.test")
	content := framesOf(t, a, b, c)
	content[len(framesOf(t, a))+headBytes+100] ^= 1
	dir := t.TempDir()
	appendPack(t, dir, content)
	n := newNode(t, dir)
	p := n.tls.pack
	if !p.has(a.ID) || p.has(b.ID) || !p.has(c.ID) {
		t.Error("it is not that record that is left out")
	}
	if warnings := n.core.Report().GetWarnings(); !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "wrong checksum") }) {
		t.Error(warnings)
	}
	// With a length that cannot be, nobody knows where the next record begins.
	content = framesOf(t, a, b, c)
	binary.LittleEndian.PutUint32(content[len(framesOf(t, a)):], maxRecordBytes+1)
	replacePack(t, dir, content)
	n.read()
	if !p.has(a.ID) || p.has(c.ID) || !strings.Contains(p.problem(), "damaged") {
		t.Error(p.problem())
	}
}

func FuzzPack(f *testing.F) {
	t := f
	a, b := issue(t, ecdsaKey(t), "a.test"), issue(t, rsaKey(), "b.test")
	f.Add(slices.Concat(framesOf(t, a, b), frameStaple(t, a, "good", time.Now())))
	f.Add(frame([]byte{0x0a, 0x02, 0x12, 0x00}))
	f.Add(frame(nil))
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		for _, cut := range []int{len(content) / 2, len(content)} {
			replacePack(t, dir, content[:cut])
			p := newPack(filepath.Join(dir, packName))
			readOf(t, p)
			// Files that nobody closes stay open until a collection, and thousands of inputs a second leave no descriptor for it.
			defer p.file.Close()
			if p.end > int64(cut) {
				t.Errorf("%d of %d bytes were read", p.end, cut)
			}
			for id := range p.index {
				material, staple, err := p.get(id)
				if err != nil {
					continue
				}
				if !slices.Equal(material.GetFingerprint(), id[:]) || staple != nil && !slices.Equal(staple.GetFingerprint(), id[:]) {
					t.Errorf("%x has %x", id, material.GetFingerprint())
				}
				_, _ = parse(id, material, staple)
			}
		}
	})
}

// frame is a record of a payload.
func frame(payload []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(payload, castagnoli))
	return append(out, payload...)
}

// It is the one that decoding finds.
func TestRecordsAreFoundByTheirFingerprint(t *testing.T) {
	a := issue(t, ecdsaKey(t), "a.test")
	for _, record := range []*edgev1.CertificateRecord{
		{Record: &edgev1.CertificateRecord_Material{Material: a.Material}},
		{Record: &edgev1.CertificateRecord_Staple{Staple: &nodev1.CertificateStaple{Fingerprint: a.ID[:]}}},
	} {
		payload, err := proto.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		if id, staple, ok := recordOf(payload); !ok || id != a.ID || staple != (record.GetStaple() != nil) {
			t.Errorf("%x, %v, %v", id, staple, ok)
		}
	}
}

// many appends records of a number of certificates, each with a fingerprint of its own.
func many(t testing.TB, dir string, n int) []fingerprint {
	t.Helper()
	like := issue(t, ecdsaKey(t), "a.test", "www.a.test")
	ids := make([]fingerprint, n)
	var content []byte
	for i := range ids {
		leaf := slices.Clone(like.Material.Chain[0])
		// Of the signature, which nobody checks here.
		binary.BigEndian.PutUint32(leaf[len(leaf)-4:], uint32(i))
		ids[i] = sha256.Sum256(leaf)
		material := &nodev1.CertificateMaterial{Fingerprint: ids[i][:], Chain: [][]byte{leaf, like.Material.Chain[1]}, PrivateKey: like.Material.PrivateKey}
		payload, err := proto.Marshal(&edgev1.CertificateRecord{Record: &edgev1.CertificateRecord_Material{Material: material}})
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, frame(payload)...)
	}
	appendPack(t, dir, content)
	return ids
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// All are asked for again and again, by many at a time, with room for a quarter of them.
func TestCacheIsBounded(t *testing.T) {
	const certificates = 10_000
	dir := t.TempDir()
	ids := many(t, dir, certificates)
	p := newPack(filepath.Join(dir, packName))
	readOf(t, p)
	const most = 10 << 20
	before := heap()
	c := newCache(p, most, time.Now)
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for i := range certificates {
				id := ids[(i*7919+worker)%certificates]
				if made, err := c.get(id, "name"); err != nil || sha256.Sum256(made.plain.Certificate[0]) != id {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	workers.Wait()
	if got := c.parsed(); got < 1000 || got == certificates || c.bytes > most {
		t.Errorf("%d certificates are held in %d bytes", got, c.bytes)
	}
	// What is counted is no less than what is taken, but for what the cache itself takes.
	took := heap() - before
	runtime.KeepAlive(c)
	if took > most+most/4 {
		t.Errorf("%d bytes are taken, %d counted", took, c.bytes)
	}
	if len(c.held) != c.order.Len() {
		t.Errorf("%d, %d", len(c.held), c.order.Len())
	}
	for _, id := range ids {
		c.drop(id)
	}
	if c.parsed() != 0 || c.bytes != 0 {
		t.Error("something is left")
	}
}

func TestCertificateIsParsedOnce(t *testing.T) {
	dir := t.TempDir()
	ids := many(t, dir, 1)
	p := newPack(filepath.Join(dir, packName))
	readOf(t, p)
	c := newCache(p, cacheBytes, time.Now)
	var mu sync.Mutex
	made := map[*certificate]bool{}
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			one, err := c.get(ids[0], "name")
			mu.Lock()
			defer mu.Unlock()
			if made[one] = true; err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if len(made) != 1 {
		t.Errorf("%d were made", len(made))
	}
}

func TestMemoryOfCertificatesThatNobodyAsksFor(t *testing.T) {
	const certificates = 20_000
	dir := t.TempDir()
	many(t, dir, certificates)
	before := heap()
	p := newPack(filepath.Join(dir, packName))
	readOf(t, p)
	took := heap() - before
	if p.size() != certificates || took/certificates > 256 {
		t.Errorf("%d certificates take %d bytes each", p.size(), took/certificates)
	}
	runtime.KeepAlive(p)
}
