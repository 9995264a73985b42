package geo

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// maxRecords bounds the different records of a database; those with cities have half a million.
const maxRecords = 2_000_000

// database is a file in MaxMind's format whose records are known: looking one up decodes nothing. It never changes.
type database[R comparable] struct {
	tree *maxminddb.Reader
	// By their places in the file.
	records map[uintptr]R
	built   time.Time
}

// open checks a file as a whole: every record that an address can lead to is there and is what it should be. The bytes
// belong to the database from then on.
func open[R comparable](file []byte, decode func(maxminddb.Result) (R, error)) (d *database[R], err error) {
	defer func() {
		// The reader of the format checks what it reads; should it miss something, the file is no better for it.
		if p := recover(); p != nil {
			d, err = nil, fmt.Errorf("cannot read the database: %v", p)
		}
	}()
	tree, err := maxminddb.OpenBytes(file)
	if err != nil {
		return nil, err
	}
	d = &database[R]{tree: tree, records: map[uintptr]R{}}
	if tree.Metadata.BuildEpoch > 0 {
		d.built = tree.Metadata.BuildTime()
	}
	var none R
	useful := false
	err = eachRecord(file, tree.Metadata, func(offset uintptr) error {
		if _, known := d.records[offset]; known {
			return nil
		}
		if len(d.records) == maxRecords {
			return fmt.Errorf("the database has more than %d different records", maxRecords)
		}
		record, err := decode(tree.LookupOffset(offset))
		d.records[offset] = record
		useful = useful || record != none
		return err
	})
	if err == nil && !useful {
		err = errors.New("no record of the database has the field that the edge needs")
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// find returns the zero record where there is none. It does not allocate.
func (d *database[R]) find(addr netip.Addr) (record R, err error) {
	if addr.Is6() && d.tree.Metadata.IPVersion == 4 {
		return record, nil
	}
	result := d.tree.Lookup(addr)
	if err := result.Err(); err != nil {
		return record, err
	}
	if result.Found() {
		record = d.records[result.Offset()]
	}
	return record, nil
}

// Bytes between the tree and the records.
const separator = 16

// eachRecord calls f with the place of every record that a node of the search tree points to, more than once where
// several do.
func eachRecord(file []byte, about maxminddb.Metadata, f func(offset uintptr) error) error {
	size := uint64(about.RecordSize) / 4
	if about.RecordSize != 24 && about.RecordSize != 28 && about.RecordSize != 32 {
		return fmt.Errorf("the search tree has records of %d bits, which is not supported", about.RecordSize)
	}
	nodes := uint64(about.NodeCount)
	if nodes == 0 || nodes > uint64(len(file))/size {
		return errors.New("the search tree is larger than the file")
	}
	for i := range nodes {
		left, right := children(file[i*size:(i+1)*size], about.RecordSize)
		for _, child := range [...]uint64{left, right} {
			switch {
			case child <= nodes:
			case child < nodes+separator:
				return errors.New("the search tree points to a wrong place")
			default:
				if err := f(uintptr(child - nodes - separator)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// children reads a node of the tree: nodes of it, their number for nothing, or places of records beyond it.
func children(node []byte, bits uint) (left, right uint64) {
	number := func(b []byte, high uint64) uint64 {
		for _, each := range b {
			high = high<<8 | uint64(each)
		}
		return high
	}
	switch bits {
	case 24:
		return number(node[:3], 0), number(node[3:], 0)
	case 28:
		return number(node[:3], uint64(node[3]>>4)), number(node[4:], uint64(node[3]&0xf))
	default:
		return number(node[:4], 0), number(node[4:], 0)
	}
}
