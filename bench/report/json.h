// The machine-readable output: one JSON object a line, one line a row.
#pragma once

#include <fstream>
#include <string>

#include "lrpc/detail/shim/result.h"
#include "row.h"

namespace lrpc::bench {

/// `row` as one line, without the newline. A missing figure is null.
[[nodiscard]] std::string to_json(const Row& row);

/// Writes rows to a file as they are measured. A default-constructed object writes nothing.
class JsonLines {
 public:
  JsonLines() = default;
  /// Truncates `path`.
  static Result<JsonLines> open(const std::string& path);
  void write(const Row& row);

 private:
  std::ofstream file_;
};

}  // namespace lrpc::bench
