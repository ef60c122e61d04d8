module github.com/example-org/subrelay-operator

go 1.26.0
