package arrowconv

import "github.com/apache/arrow-go/v18/arrow/decimal128"

// This file reads the numbers that most rows hold, in a few instructions a
// digit. Its functions take a text and where a number begins, and give the value
// and where it ends; ok is false for numbers that need the long way of number.go
// (and for what is no number), whose results they share otherwise.

// numberEnd finds the end of a number in JSON's grammar, gaveUp if there is none.
func numberEnd(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = digitsEnd(b, i); i < 0 {
		return gaveUp
	}
	if i < len(b) && b[i] == '.' {
		if i = digitsEnd(b, i+1); i < 0 {
			return gaveUp
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digitsEnd(b, i)
	}
	return i
}

// digitsEnd passes over one digit or more.
func digitsEnd(b []byte, i int) int {
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return gaveUp
	}
	return i
}

// isNumber tells whether s is a number in JSON's grammar.
func isNumber(s []byte) bool { return numberEnd(s, 0) == len(s) && len(s) > 0 }

// mantissa reads the digits of a number without sign and exponent: its digits
// as one integer, and how many of them follow the point.
func mantissa(b []byte, i int) (v int64, point, end int, ok bool) {
	first := i
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		v = v*10 + int64(d)
	}
	digits := i - first
	if digits == 0 || digits > 1 && b[first] == '0' {
		return 0, 0, i, false
	}
	if i < len(b) && b[i] == '.' {
		i++
		dot := i
		for ; i < len(b); i++ {
			d := b[i] - '0'
			if d > 9 {
				break
			}
			v = v*10 + int64(d)
		}
		if point = i - dot; point == 0 {
			return 0, 0, i, false
		}
		digits += point
	}
	return v, point, i, digits <= 18 && (i >= len(b) || b[i]|0x20 != 'e')
}

// quickInt reads an integer of at most 18 digits.
func quickInt(b []byte, i int) (v int64, end int, ok bool) {
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	first := i
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		v = v*10 + int64(d)
	}
	digits := i - first
	if digits == 0 || digits > 18 || digits > 1 && b[first] == '0' {
		return 0, i, false
	}
	if i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
		return 0, i, false
	}
	if neg {
		v = -v
	}
	return v, i, true
}

// Powers of ten that a double, or 64 bits, hold exactly.
var (
	powers   = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}
	powers64 = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}
)

// quickDouble reads a number whose digits fit 53 bits: divided by a power of
// ten that is exact as well, they give the nearest double in one rounding.
func quickDouble(b []byte, i int) (f float64, end int, ok bool) {
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	v, point, end, ok := mantissa(b, i)
	if !ok || v > 1<<53 {
		return 0, end, false
	}
	f = float64(v)
	if point > 0 {
		f /= powers[point]
	}
	if neg {
		f = -f
	}
	return f, end, true
}

// quickDecimal reads a number of at most 18 digits at the scale.
func quickDecimal(b []byte, i int, precision, scale int32) (d decimal128.Num, end int, ok bool) {
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	v, point, end, ok := mantissa(b, i)
	shift := int(scale) - point
	if !ok || shift < 0 || shift > 18 || v > 1e18/powers64[shift] {
		return d, end, false
	}
	if v *= powers64[shift]; v >= powers64[min(precision, 18)] {
		return d, end, false
	}
	if neg {
		v = -v
	}
	return decimal128.FromI64(v), end, true
}
