package svctls

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
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

// readOf reads a pack and returns whose records changed; all is true where all may have.
func readOf(t *testing.T, p *pack) (ids []fingerprint, all bool) {
	t.Helper()
	if err := p.read(func(id *fingerprint) {
		if id == nil {
			all = true
		} else {
			ids = append(ids, *id)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return ids, all
}

func TestPackIsReadAtItsTail(t *testing.T) {
	dir := t.TempDir()
	p := newPack(filepath.Join(dir, packName))
	if ids, all := readOf(t, p); len(ids) != 0 || all || p.problem() != "" {
		t.Error("something was read of no file")
	}
	key := ecdsaKey(t)
	a, b, c := issue(t, key, "a.test"), issue(t, key, "b.test"), issue(t, key, "c.test")
	appendPack(t, dir, framesOf(t, a))
	if _, all := readOf(t, p); !all || !p.has(a.ID) || p.has(b.ID) {
		t.Error("a new file is not read")
	}
	appendPack(t, dir, framesOf(t, b))
	appendPack(t, dir, frameStaple(t, a, "good", time.Now()))
	if ids, all := readOf(t, p); all || !slices.Equal(ids, []fingerprint{b.ID, a.ID}) {
		t.Errorf("%d, %v", len(ids), all)
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
	if _, all := readOf(t, p); !all || p.has(a.ID) || !p.has(c.ID) || p.size() != 1 {
		t.Error("a replaced file is not read")
	}
	if err := os.Truncate(filepath.Join(dir, packName), 0); err != nil {
		t.Fatal(err)
	}
	if _, all := readOf(t, p); !all || p.size() != 0 {
		t.Error("an emptied file is not read")
	}
	appendPack(t, dir, framesOf(t, a))
	readOf(t, p)
	if err := os.Remove(filepath.Join(dir, packName)); err != nil {
		t.Fatal(err)
	}
	if _, all := readOf(t, p); !all || p.has(a.ID) {
		t.Error("a removed file is still used")
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
		if ids, _ := readOf(t, p); !slices.Equal(ids, []fingerprint{b.ID}) || p.problem() != "" {
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
	c.drop(nil)
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
