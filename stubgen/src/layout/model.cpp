#include "lrpc/stubgen/layout/model.h"

#include <algorithm>

namespace lrpc::stubgen {

const Type& Type::resolved() const {
  const Type* type = this;
  while (type->kind == TypeKind::alias) type = type->target;
  return *type;
}

std::vector<const Parameter*> Procedure::arguments() const {
  std::vector<const Parameter*> found;
  for (const Parameter& parameter : parameters) {
    if (parameter.is_in()) found.push_back(&parameter);
  }
  return found;
}

std::vector<const Parameter*> Procedure::results() const {
  std::vector<const Parameter*> found;
  for (const Parameter& parameter : parameters) {
    if (!parameter.is_in() && !parameter.is_bytes()) found.push_back(&parameter);
  }
  return found;
}

std::vector<const Parameter*> Procedure::buffers() const {
  std::vector<const Parameter*> found;
  for (const Parameter& parameter : parameters) {
    if (!parameter.is_in() && parameter.is_bytes()) found.push_back(&parameter);
  }
  return found;
}

bool Procedure::any_variable() const {
  return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.variable(); });
}

std::string Procedure::own(const std::string& wanted) const {
  const bool hidden =
      std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& one) { return one.name == wanted; });
  return hidden ? wanted + "_" : given->own(wanted);
}

std::string Interface::cpp_namespace() const {
  return (enclosing_namespace.empty() ? "" : "::" + enclosing_namespace) + "::" + name;
}

}  // namespace lrpc::stubgen
