#include "steps.h"

#include <algorithm>
#include <map>
#include <span>

#include "lrpc/detail/shim/call/step.h"

// The linker's own names for the ends of the section.
extern "C" {
extern const lrpc::shim::StepMark __start_lrpc_steps[];
extern const lrpc::shim::StepMark __stop_lrpc_steps[];
}

namespace lrpc::storm {

std::vector<Step> find_steps() {
  std::map<std::string, std::vector<std::uintptr_t>> found;
  for (const shim::StepMark& mark : std::span(__start_lrpc_steps, __stop_lrpc_steps)) {
    const auto place = reinterpret_cast<std::uintptr_t>(&mark) + static_cast<std::uintptr_t>(std::intptr_t{mark.place});
    found[mark.name].push_back(place);
  }
  std::vector<Step> steps;
  for (auto& [name, places] : found) {
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    steps.push_back({name, std::move(places)});
  }
  return steps;
}

}  // namespace lrpc::storm
