package report

import (
	"math"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// missing stands in a table for what was not measured.
const missing = "–"

var printer = message.NewPrinter(language.English)

// Quantile returns the smallest value that the given share, from 0 to 1, of all values does not exceed. There must be values.
func Quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// Median returns the middle value, or the mean of the two in the middle. There must be values.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

// number writes a value with commas between thousands.
func number(value float64, digits int) string { return printer.Sprintf("%.*f", digits, value) }

// spread writes the median, and the least and the greatest if there are several values.
func spread(values []float64, digits int) string {
	switch len(values) {
	case 0:
		return missing
	case 1:
		return number(values[0], digits)
	default:
		return number(Median(values), digits) + " (" + number(slices.Min(values), digits) + "–" + number(slices.Max(values), digits) + ")"
	}
}
