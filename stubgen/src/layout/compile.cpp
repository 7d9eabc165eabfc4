#include "lrpc/stubgen/layout/compile.h"

#include "language/parser.h"
#include "layout/canonical.h"
#include "layout/checker.h"
#include "layout/layout.h"

namespace lrpc::stubgen {

std::optional<Interface> compile(const Source& source, Diagnostics& diagnostics, Origin origin) {
  const auto file = parse(source, diagnostics);
  if (!file) return std::nullopt;
  auto interface = check(*file, diagnostics, origin);
  if (!interface) return std::nullopt;
  lay_out(*interface, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  for (Interface* one : {interface->callback.get(), &*interface}) {
    if (one == nullptr) continue;
    one->canonical = canonical_text(*one);
    one->hash = fnv1a(one->canonical);
  }
  return interface;
}

}  // namespace lrpc::stubgen
