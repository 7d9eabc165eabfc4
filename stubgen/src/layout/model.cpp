#include "lrpc/stubgen/layout/model.h"

#include <algorithm>

namespace lrpc::stubgen {
namespace {

template <class Wanted>
std::vector<const Parameter*> those(const std::vector<Parameter>& parameters, const Wanted& wanted) {
  std::vector<const Parameter*> found;
  for (const Parameter& parameter : parameters)
    if (wanted(parameter)) found.push_back(&parameter);
  return found;
}

}  // namespace

const Type& Type::resolved() const {
  const Type* type = this;
  while (type->kind == TypeKind::alias) type = type->target;
  return *type;
}

std::string Type::range_text(std::string_view between) const {
  const IntegerKind& whole = resolved().integer;
  return low.value_or(whole.lowest()).text().append(between) + high.value_or(whole.highest()).text();
}

std::vector<const Parameter*> Procedure::arguments() const {
  return those(parameters, [](const Parameter& one) { return one.is_in(); });
}

std::vector<const Parameter*> Procedure::results() const {
  return those(parameters, [](const Parameter& one) { return !one.is_in() && !one.is_bytes(); });
}

std::vector<const Parameter*> Procedure::buffers() const {
  return those(parameters, [](const Parameter& one) { return !one.is_in() && one.is_bytes(); });
}

bool Procedure::any_variable() const { return std::ranges::any_of(parameters, &Parameter::variable); }

std::string Procedure::own(const std::string& wanted) const {
  const bool hidden = std::ranges::find(parameters, wanted, &Parameter::name) != parameters.end();
  return hidden ? wanted + "_" : given->own(wanted);
}

std::string Interface::cpp_namespace() const {
  return (enclosing_namespace.empty() ? "" : "::" + enclosing_namespace) + "::" + name;
}

}  // namespace lrpc::stubgen
