"""The work of dcsvm-export: read a model, convert it, write the file."""

from dcsvm.cli.export import ExportJob
from dcsvm.cli.options import print_result
from dcsvm.data.files import write_beside
from dcsvm.model.reader import load_model


def export_file(job: ExportJob, threads: int | None) -> int:
    """Run an export job; return the exit status."""
    model = load_model(job.model_file, threads=threads)
    method = "early" if job.early else None
    try:
        if job.output_file.lower().endswith(".c"):
            content = model.to_c(method=method).encode("ascii")
        else:
            content = model.to_onnx(method=method)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{job.model_file}: {error}") from None
    write_beside(job.output_file, [content])
    if not job.quiet:
        print_result(f"{job.output_file}: {len(content)} bytes")
    return 0
