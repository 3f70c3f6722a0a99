package arrowconv

import "math/bits"

// unit gives a number in a time column its meaning.
type unit uint8

const (
	unitNone unit = iota
	unitSecond
	unitMilli
	unitMicro
	unitNano
	unitDay
)

func unitOf(s string) unit {
	switch s {
	case "s":
		return unitSecond
	case "ms":
		return unitMilli
	case "us":
		return unitMicro
	case "ns":
		return unitNano
	case "d":
		return unitDay
	}
	return unitNone
}

// Bounds of the times stored: what has a text form of four digits a year.
const (
	secondsPerDay = 86_400
	minDay        = -719_528                               // 0000-01-01
	maxDay        = 2_932_896                              // 9999-12-31
	minMicros     = minDay * secondsPerDay * 1_000_000     // 0000-01-01T00:00:00
	maxMicros     = (maxDay+1)*secondsPerDay*1_000_000 - 1 // 9999-12-31T23:59:59.999999
)

// timeProblem says why a text is no value of a time column.
type timeProblem uint8

const (
	timeOK      timeProblem = iota
	timeBad                 // not in the form
	timeNoZone              // a date-time without an offset
	timeHasZone             // a date-time with an offset
	timeFiner               // digits past the microsecond that are not zero
	timeRange               // outside the years 0000 to 9999
)

// parseDate reads yyyy-mm-dd as days since 1970-01-01.
func parseDate(s []byte) (int32, timeProblem) {
	if len(s) != 10 {
		return 0, timeBad
	}
	days, ok := parseDay(s)
	if !ok {
		return 0, timeBad
	}
	return int32(days), timeOK
}

// parseDay reads the ten characters yyyy-mm-dd; s must hold that many.
func parseDay(s []byte) (int, bool) {
	_ = s[9]
	if s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y1, ok1 := twoDigits(s, 0)
	y2, ok2 := twoDigits(s, 2)
	m, ok3 := twoDigits(s, 5)
	d, ok4 := twoDigits(s, 8)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 0, false
	}
	y := y1*100 + y2
	if m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return 0, false
	}
	return daysFromCivil(y, m, d), true
}

func twoDigits(s []byte, i int) (int, bool) {
	a, b := s[i]-'0', s[i+1]-'0'
	return int(a)*10 + int(b), a <= 9 && b <= 9
}

func daysIn(y, m int) int {
	if m == 2 {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 + (m+m>>3)&1
}

// daysFromCivil counts the days from 1970-01-01 in the proleptic Gregorian
// calendar, by years that begin in March so that the leap day comes last.
func daysFromCivil(y, m, d int) int {
	if m <= 2 {
		y--
		m += 12
	}
	// The era keeps the divisions on non-negative numbers: y is -1 at least.
	era := (y + 400) / 400
	yoe := y + 400 - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return (era-1)*146_097 + doe - 719_468
}

// parseTimestamp reads an RFC 3339 date-time as microseconds since 1970: with
// an offset for zoned, without one otherwise. Lawful spellings are taken (T or
// t or a space, Z or z, any number of fraction digits, an offset of -00:00, a
// leap second, which is the first second of the next day as in POSIX time), and
// an offset without its colon, which is common. Digits past the microsecond
// must be zero unless truncate is set.
func parseTimestamp(s []byte, zoned, truncate bool) (int64, timeProblem) {
	if len(s) < 19 {
		return 0, timeBad
	}
	days, ok := parseDay(s)
	if !ok {
		return 0, timeBad
	}
	return parseClock(s, days, zoned, truncate)
}

// parseClock reads what follows the day in a date-time of at least 19 bytes.
func parseClock(s []byte, days int, zoned, truncate bool) (int64, timeProblem) {
	if c := s[10]; c != 'T' && c != 't' && c != ' ' {
		return 0, timeBad
	}
	h, ok1 := twoDigits(s, 11)
	m, ok2 := twoDigits(s, 14)
	sec, ok3 := twoDigits(s, 17)
	if !ok1 || !ok2 || !ok3 || s[13] != ':' || s[16] != ':' || h > 23 || m > 59 || sec > 60 {
		return 0, timeBad
	}
	i := 19
	micros, finer := 0, false
	if i < len(s) && s[i] == '.' {
		i++
		first := i
		scale := 100_000
		for ; i < len(s); i++ {
			d := s[i] - '0'
			if d > 9 {
				break
			}
			if scale == 0 {
				finer = finer || d != 0
				continue
			}
			micros += int(d) * scale
			scale /= 10
		}
		if i == first {
			return 0, timeBad
		}
	}
	offset := 0
	switch {
	case i == len(s):
		if zoned {
			return 0, timeNoZone
		}
	case s[i] == 'Z' || s[i] == 'z':
		if i+1 != len(s) {
			return 0, timeBad
		}
		if !zoned {
			return 0, timeHasZone
		}
	case s[i] == '+' || s[i] == '-':
		minutes := 3
		if len(s) == i+6 && s[i+3] == ':' {
			minutes = 4
		} else if len(s) != i+5 {
			return 0, timeBad
		}
		oh, ok1 := twoDigits(s, i+1)
		om, ok2 := twoDigits(s, i+minutes)
		if !ok1 || !ok2 || oh > 23 || om > 59 {
			return 0, timeBad
		}
		if !zoned {
			return 0, timeHasZone
		}
		offset = oh*3600 + om*60
		if s[i] == '-' {
			offset = -offset
		}
	default:
		return 0, timeBad
	}
	seconds := int64(days)*secondsPerDay + int64(h*3600+m*60+sec-offset)
	if sec == 60 && seconds%secondsPerDay != 0 {
		return 0, timeBad // leap seconds end a UTC day
	}
	if finer && !truncate {
		return 0, timeFiner
	}
	t := seconds*1_000_000 + int64(micros)
	if t < minMicros || t > maxMicros {
		return 0, timeRange
	}
	return t, timeOK
}

// epochMicros turns a number of units since 1970 into microseconds, rounding
// towards the past where digits are dropped.
func epochMicros(n decimal, u unit, truncate bool) (int64, timeProblem) {
	shift := 6
	switch u {
	case unitMilli:
		shift = 3
	case unitMicro:
		shift = 0
	case unitNano:
		shift = -3
	}
	t, exact, ok := n.shifted(shift)
	switch {
	case !ok || t < minMicros || t > maxMicros:
		return 0, timeRange
	case !exact && (!truncate || n.long):
		return 0, timeFiner
	}
	return t, timeOK
}

// mulAdd128 is hi:lo*10 + d, and whether it fits.
func mulAdd128(hi, lo uint64, d uint64) (uint64, uint64, bool) {
	c, l := bits.Mul64(lo, 10)
	over, h := bits.Mul64(hi, 10)
	l, carry := bits.Add64(l, d, 0)
	h, carry2 := bits.Add64(h, c, carry)
	return h, l, over == 0 && carry2 == 0
}
