// --print-pdl: procedures, A-stack classes and offsets as a table for people.
#include <fmt/format.h>

#include "generator.h"

namespace lrpc::stubgen {
namespace {

std::string place(const Parameter& parameter) {
  if (!parameter.variable()) return fmt::format("{:>6} {:>6}", parameter.offset, parameter.type->size);
  const Window& window = parameter.window;
  const std::uint64_t bound = parameter.type->resolved().bound;
  std::string text = fmt::format("{:>6} {:>6}  ", parameter.offset, 4);
  if (window.inline_capacity > 0) text += fmt::format("window {} +{}", window.inline_offset, window.inline_capacity);
  if (bound > window.inline_capacity)
    text += fmt::format("{}tail {} +{}", window.inline_capacity > 0 ? ", " : "", window.tail_offset, bound);
  return text;
}

}  // namespace

std::string print_pdl(const Interface& interface) {
  std::string text = fmt::format("interface {} version {}.{}  hash {:016x}\n\n", interface.name, interface.major,
                                 interface.minor, interface.hash);
  text += fmt::format("{:<6} {:>10} {:>12} {:>8}\n", "class", "image", "tail", "A-stacks");
  for (std::size_t i = 0; i < interface.classes.size(); ++i) {
    const AStackClass& shared = interface.classes[i];
    text += fmt::format("{:<6} {:>10} {:>12} {:>8}\n", i, shared.image_size, shared.tail_size, shared.count);
  }
  for (std::size_t i = 0; i < interface.procedures.size(); ++i) {
    const Procedure& procedure = interface.procedures[i];
    text += fmt::format("\n{} {}  class {}  image {}  tail {}  A-stacks {}  stack {}{}{}\n", i, procedure.name,
                        procedure.astack_class, procedure.image_size, procedure.tail_size, procedure.astacks,
                        procedure.stack_need, procedure.may_block ? "  may_block" : "",
                        procedure.one_way ? "  oneway" : "");
    if (!procedure.parameters.empty() || !procedure.raises.empty())
      text += fmt::format("  {:<6} {:<20} {:<28} {:>6} {:>6}\n", "", "name", "type", "offset", "size");
    constexpr std::string_view kDirections[] = {"in", "inout", "out"};
    for (const Parameter& parameter : procedure.parameters) {
      text += fmt::format("  {:<6} {:<20} {:<28} {}\n", kDirections[static_cast<std::size_t>(parameter.direction)],
                          parameter.name, parameter.type->name, place(parameter));
    }
    for (std::size_t error = 0; error < procedure.raises.size(); ++error) {
      const Raised& raised = procedure.raises[error];
      text += fmt::format("  {:<6} {:<20} {:<28} {:>6} {:>6}\n", "raises", fmt::format("status {}", error + 1),
                          raised.type->name, raised.offset, raised.type->size);
    }
  }
  if (interface.callback != nullptr) text += "\n" + print_pdl(*interface.callback);
  return text;
}

}  // namespace lrpc::stubgen
