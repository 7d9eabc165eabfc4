// Texts of strangers, for logs and errors.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lrpc::directory {

/// Its first 200 bytes, with a '?' for each that is no printable ASCII.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string words(text.substr(0, 200));
  std::ranges::replace_if(
      words, [](char c) { return c < ' ' || c > '~'; }, '?');
  return words;
}

}  // namespace lrpc::directory
