#include "lrpc/stubgen/layout/compile.h"

#include <fmt/format.h>

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
  if (interface->canonical.size() > limits::kMaxExportedText) {
    diagnostics.warning(interface->at,
                        fmt::format("the declaration has {} bytes; with more than {} it may be too long to be exported "
                                    "under a name, and can only be served over a socket",
                                    interface->canonical.size(), limits::kMaxExportedText));
  }
  return interface;
}

}  // namespace lrpc::stubgen
