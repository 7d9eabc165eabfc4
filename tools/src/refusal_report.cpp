#include "refusal_report.h"

#include <fmt/format.h>

namespace lrpc::tools {

void RefusalReport::refused(const Refusal& refusal) {
  if (const auto known = counts_.find(refusal.name); known != counts_.end()) {
    ++known->second;
  } else if (counts_.size() < kMaxNames) {
    counts_.emplace(refusal.name, 1);
    print_(fmt::format("refused: {} (process {})", refusal.name, refusal.pid));
  } else if (not_listed_++ == 0) {
    print_(fmt::format("refused: more than {} different system calls; the others are not listed", kMaxNames));
  }
}

void RefusalReport::finish() {
  for (const auto& [name, count] : counts_)
    if (count > 1) print_(fmt::format("refused: {}, {} times in all", name, count));
  if (not_listed_ > 0) print_(fmt::format("refused: {} more calls, which were not listed", not_listed_));
}

}  // namespace lrpc::tools
