#include "callgrind_profile.h"

#include <cstdlib>

namespace lrpc::bench {

Result<std::map<std::string, std::uint64_t, std::less<>>> read_profile(std::istream& text, const ComponentOf& of) {
  std::map<std::string, std::uint64_t, std::less<>> counts;
  std::string function_file;  // the file that contains the function
  std::string file;           // the file that contains the line
  bool events = false;
  bool inclusive = false;  // the next line is the inclusive cost of a call, which the callee's own lines also count
  std::uint64_t* count = nullptr;
  for (std::string line; std::getline(text, line);) {
    const std::string_view all = line;
    const auto rest = [&](std::string_view key) { return std::string(all.substr(key.size())); };
    if (all.starts_with("events: Ir")) events = true;
    if (all.starts_with("fl=")) {
      file = function_file = rest("fl=");
      count = nullptr;
    } else if (all.starts_with("fi=") || all.starts_with("fe=")) {
      file = rest("fi=");
      count = nullptr;
    } else if (all.starts_with("fn=")) {
      file = function_file;
      count = nullptr;
    } else if (all.starts_with("calls=")) {
      inclusive = true;
    } else if (!all.empty() && all[0] >= '0' && all[0] <= '9') {  // a line's number and its cost
      if (std::exchange(inclusive, false)) continue;
      const std::size_t space = all.find(' ');
      if (space == std::string_view::npos) continue;
      if (count == nullptr) {
        std::string_view component = of(file);
        if (component.empty()) component = of(function_file);
        count = &counts[std::string(component)];
      }
      *count += std::strtoull(line.c_str() + space, nullptr, 10);
    }
  }
  if (!events || counts.empty()) return Error{Errc::bad_message, "callgrind wrote no counts of instructions"};
  return counts;
}

}  // namespace lrpc::bench
