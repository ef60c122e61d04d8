module github.com/example-org/subrelay-operator/lab/components/pause

go 1.26.0
