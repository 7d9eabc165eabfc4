// SYNC and ASYNC: what the protocols above do with a composite protocol that has GRPC (§4.2).
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

MicroKind style_kind(std::string name, std::string summary, CallStyle style, std::string_view other) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .needs = {{"GRPC"}},
          .excludes = {other},
          .style = style,
          .make = make_passive};
}

}  // namespace

MicroKind sync_kind() { return style_kind("SYNC", "a call, which ends with a reply", CallStyle::call, "ASYNC"); }
MicroKind async_kind() {
  return style_kind("ASYNC", "a push, whose replies come up as messages", CallStyle::push, "SYNC");
}

}  // namespace lrpc::netrpc::composite
