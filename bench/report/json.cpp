#include "json.h"

#include <cerrno>
#include <nlohmann/json.hpp>

namespace lrpc::bench {

std::string to_json(const Row& row) {
  const auto number_or_null = [](const std::optional<double>& number) {
    return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
  };
  const nlohmann::ordered_json line = {
      {"bench", row.bench},
      {"system", row.system},
      {"gate", row.gate},
      {"placement", row.placement},
      {"test", row.test},
      {"unit", row.unit},
      {"median", row.figures.median},
      {"p99", row.figures.p99},
      {"min", row.figures.min},
      {"max", row.figures.max},
      {"calls", row.figures.calls},
      {"floor", number_or_null(row.figures.floor)},
      {"ratio", number_or_null(row.figures.ratio)},
      {"mean", row.figures.mean},  // NaN is written as null
  };
  return line.dump();
}

Result<JsonLines> JsonLines::open(const std::string& path) {
  JsonLines lines;
  lines.file_.open(path, std::ios::trunc);
  if (!lines.file_) return system_error("cannot write " + path, errno);
  return lines;
}

void JsonLines::write(const Row& row) {
  if (file_.is_open()) file_ << to_json(row) << '\n' << std::flush;
}

}  // namespace lrpc::bench
