package report

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// panel is one of the plots beside each other.
type panel struct {
	title string
	lines []line
}

type line struct {
	name  string
	value func(Run) (float64, bool)
}

var panels = []panel{
	{"requests per pool", besidePlain(func(w Wave) float64 { return w.each(w.Requests) })},
	{"CPU of all per pool, ms", besidePlain(func(w Wave) float64 { return allCPU(w) * milli })},
	{"peak resident memory, MiB", []line{{"operator", ofCreate(func(w Wave) float64 { return float64(w.Peak) / mebibyte })}}},
}

func besidePlain(value func(Wave) float64) []line {
	return []line{{"operator", ofCreate(value)}, {"plain create", func(r Run) (float64, bool) {
		references := r.reference()
		values := make([]float64, 0, len(references))
		for _, reference := range references {
			values = append(values, value(reference))
		}
		return mean(values), len(values) > 0
	}}}
}

// WritePlot writes cost over the number of pools as SVG: the medians of all rounds, with the least and the greatest.
func (r Results) WritePlot(out io.Writer) error {
	const width, height = 24 * vg.Centimeter, 8 * vg.Centimeter
	canvas := vgsvg.New(width, height)
	plots := make([]*plot.Plot, 0, len(panels))
	for _, panel := range panels {
		made, err := r.plot(panel)
		if err != nil {
			return fmt.Errorf("plot %s: %w", panel.title, err)
		}
		plots = append(plots, made)
	}
	tiles := draw.Tiles{
		Rows: 1, Cols: len(plots), PadX: vg.Centimeter, PadTop: vg.Millimeter, PadBottom: vg.Millimeter, PadRight: vg.Centimeter,
	}
	for i, area := range plot.Align([][]*plot.Plot{plots}, tiles, draw.New(canvas))[0] {
		plots[i].Draw(area)
	}
	if _, err := canvas.WriteTo(out); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// points are medians by the number of pools, each with its distances to the least and the greatest.
type points struct {
	plotter.XYs
	plotter.YErrors
}

func (r Results) plot(panel panel) (*plot.Plot, error) {
	made := plot.New()
	made.BackgroundColor = color.White
	made.Title.Text = panel.title
	made.X.Label.Text = "pools"
	made.Legend.Top, made.Legend.Left = false, true
	made.Add(plotter.NewGrid())
	for i, line := range panel.lines {
		if err := r.addLine(made, line, i); err != nil {
			return nil, err
		}
	}
	const margin = 1.1
	made.X.Min, made.Y.Min = 0, 0
	made.X.Max *= margin
	made.Y.Max *= margin
	return made, nil
}

func (r Results) addLine(made *plot.Plot, line line, number int) error {
	found := points{}
	for _, pools := range r.Sizes() {
		values := collect(r.at(pools), line.value)
		if len(values) == 0 {
			continue
		}
		middle := Median(values)
		found.XYs = append(found.XYs, plotter.XY{X: float64(pools), Y: middle})
		found.YErrors = append(found.YErrors, struct{ Low, High float64 }{middle - slices.Min(values), slices.Max(values) - middle})
	}
	if len(found.XYs) == 0 {
		return nil
	}
	path, dots, err := plotter.NewLinePoints(found.XYs)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(found)
	if err != nil {
		return err
	}
	path.Color, dots.Color, bars.Color = plotutil.Color(number), plotutil.Color(number), plotutil.Color(number)
	made.Add(path, dots, bars)
	made.Legend.Add(line.name, path, dots)
	return nil
}
