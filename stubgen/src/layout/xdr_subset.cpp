#include "lrpc/stubgen/layout/xdr_subset.h"

#include <algorithm>

namespace lrpc::stubgen {

std::string_view why_not_in_xdr(const Procedure& procedure) {
  const bool handles = std::ranges::any_of(procedure.parameters, &Parameter::is_handle);
  return handles ? "a handle belongs to one binding, and Sun RPC has none" : "";
}

bool is_xdr_opaque(const Type& type) {
  const Type& array = type.resolved();
  return array.kind == TypeKind::array && array.target->resolved().kind == TypeKind::byte;
}

bool is_xdr_enum(const Type& type) {
  constexpr IntegerKind kWord{.is_signed = true, .bits = 32};
  const Type& resolved = type.resolved();
  return resolved.kind == TypeKind::enumeration &&
         std::ranges::all_of(resolved.enumerators, [&](const Enumerator& one) {
           return one.value >= kWord.lowest() && one.value <= kWord.highest();
         });
}

}  // namespace lrpc::stubgen
