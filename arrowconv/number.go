package arrowconv

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// decimal is a number read exactly: (hi:lo) × 10^exp, with no trailing zeros in
// hi:lo, so that exp < 0 means a fraction.
type decimal struct {
	hi, lo   uint64
	exp      int
	digits   int // significant ones
	neg      bool
	long     bool // more than 38 digits: hi:lo is not the value
	fraction bool // written with a fraction or an exponent
}

// maxExp is where exponents are clamped: beyond any literal's digits.
const maxExp = 1 << 40

// parseDecimal reads a number in JSON's grammar, which the caller has checked.
func parseDecimal(s []byte) decimal {
	var d decimal
	i := 0
	if s[0] == '-' {
		d.neg = true
		i = 1
	}
	zeros, point := 0, 0 // zeros seen since the last other digit; digits after the point
	afterPoint := false
loop:
	for ; i < len(s); i++ {
		switch c := s[i]; c {
		case '.':
			d.fraction, afterPoint = true, true
		case 'e', 'E':
			break loop
		case '0':
			if afterPoint {
				point++
			}
			if d.digits > 0 {
				zeros++
			}
		default:
			if afterPoint {
				point++
			}
			for ; zeros > 0; zeros-- {
				d.add(0)
			}
			d.add(uint64(c - '0'))
		}
	}
	e := 0
	if i < len(s) {
		d.fraction = true
		e = parseExponent(s[i+1:])
	}
	if d.digits > 0 {
		d.exp = zeros - point + e
	}
	return d
}

func (d *decimal) add(digit uint64) {
	d.digits++
	if d.long = d.digits > 38; !d.long {
		d.hi, d.lo, _ = mulAdd128(d.hi, d.lo, digit)
	}
}

func parseExponent(s []byte) int {
	neg := false
	if s[0] == '+' || s[0] == '-' {
		neg = s[0] == '-'
		s = s[1:]
	}
	e := 0
	for _, c := range s {
		if e < maxExp {
			e = e*10 + int(c-'0')
		}
	}
	if neg {
		return -e
	}
	return e
}

func (d decimal) zero() bool { return d.digits == 0 }

// shifted is d × 10^shift as an integer, rounded towards minus infinity (unless
// d is long); exact tells whether nothing was lost, ok whether 64 bits hold it.
func (d decimal) shifted(shift int) (v int64, exact, ok bool) {
	if d.zero() {
		return 0, true, true
	}
	exp := d.exp + shift
	if d.digits+exp > 19 {
		return 0, true, false
	}
	if d.long {
		return 0, false, true // a fraction of more than 19 digits
	}
	hi, lo := d.hi, d.lo
	exact = true
	if exp < 0 && d.digits+exp <= 0 {
		hi, lo, exact = 0, 0, false
	} else {
		for ; exp < 0; exp++ {
			var r1, r2 uint64
			hi, r1 = hi/10, hi%10
			lo, r2 = bits.Div64(r1, lo, 10)
			exact = exact && r2 == 0
		}
		for ; exp > 0; exp-- {
			var fits bool
			if hi, lo, fits = mulAdd128(hi, lo, 0); !fits {
				return 0, true, false
			}
		}
	}
	if !exact && d.neg {
		var carry uint64
		lo, carry = bits.Add64(lo, 1, 0)
		hi += carry
	}
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && !d.neg {
		return 0, exact, false
	}
	if d.neg {
		return -int64(lo), exact, true
	}
	return int64(lo), exact, true
}

// decimal128 gives the unscaled value at a precision and scale; exact is false
// if digits lie past the scale, ok if the number is too large.
func (d decimal) decimal128(precision, scale int32) (v decimal128.Num, exact, ok bool) {
	if d.zero() {
		return decimal128.Num{}, true, true
	}
	exp := d.exp + int(scale)
	if exp < 0 {
		return v, false, true
	}
	if d.digits+exp > int(precision) {
		return v, true, false
	}
	hi, lo := d.hi, d.lo
	for ; exp > 0; exp-- {
		hi, lo, _ = mulAdd128(hi, lo, 0)
	}
	v = decimal128.New(int64(hi), lo)
	if d.neg {
		v = v.Negate()
	}
	return v, true, true
}

// numberProblem says why a number does not fit a column.
type numberProblem uint8

const (
	numberOK      numberProblem = iota
	numberInexact               // the column would round it
	numberRange                 // beyond the column's range
)

// parseDouble reads a number in JSON's grammar as a double (or a float, by
// size 32). A fraction becomes the nearest one; an integer must be held exactly;
// what overflows, or vanishes to zero, does not fit.
func parseDouble(s []byte, size int) (float64, numberProblem) {
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(s), len(s)), size)
	if err != nil || math.IsInf(f, 0) {
		return 0, numberRange
	}
	integer := true
	for _, c := range s {
		if c == '.' || c == 'e' || c == 'E' {
			integer = false
			break
		}
	}
	if !integer {
		if f == 0 && !parseDecimal(s).zero() {
			return 0, numberRange
		}
		return f, numberOK
	}
	if !sameInt(s, f) {
		return 0, numberInexact
	}
	return f, numberOK
}

// sameInt tells whether the integer spelled by s is f exactly.
func sameInt(s []byte, f float64) bool {
	if v, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(s), len(s)), 10, 64); err == nil {
		return int64Exact(v, f)
	}
	want, ok := new(big.Int).SetString(string(s), 10) // at most 309 digits, or f had overflowed
	if !ok {
		return false
	}
	got, accuracy := new(big.Float).SetFloat64(f).Int(nil)
	return accuracy == big.Exact && got.Cmp(want) == 0
}

// int64Exact tells whether f, the double nearest to v, is v.
func int64Exact(v int64, f float64) bool {
	return f >= -1<<63 && f < 1<<63 && int64(f) == v
}
