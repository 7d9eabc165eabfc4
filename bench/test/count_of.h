// Counts how often a picture contains a text.
#pragma once

#include <cstddef>
#include <string_view>

namespace lrpc::bench {

inline std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace lrpc::bench
