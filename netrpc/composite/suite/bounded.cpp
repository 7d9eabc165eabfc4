// BOUNDED and UNBOUNDED: how long a call may take, whatever its caller says (§4.2).
#include "netrpc/composite/calls.h"
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Bounded final : public MicroProtocol {
 public:
  explicit Bounded(MicroParts& parts)
      : parts_(parts), limit_(parts.options.duration("limit", std::chrono::seconds(10))) {
    parts_.handle(kCallBegun, [this](CallId call, const Session* /*session*/) {
      if (!parts_.calls().bound(call, limit_)) parts_.calls().end(call, Errc::limit_reached);
    });
  }

 private:
  MicroParts parts_;
  const Duration limit_;
};

}  // namespace

MicroKind bounded_kind() {
  return {.name = "BOUNDED",
          .summary = "ends calls that take long",
          .imports = {kCallBegun.name},
          .needs = {{"GRPC"}},
          .excludes = {"UNBOUNDED"},
          .options = {{"limit", OptionType::duration, "of each call; 10s", false, "1ms"}},
          .make = make_micro<Bounded>};
}

MicroKind unbounded_kind() {
  return {.name = "UNBOUNDED",
          .summary = "says that nothing but its caller bounds a call",
          .needs = {{"GRPC"}},
          .excludes = {"BOUNDED"},
          .make = make_passive};
}

}  // namespace lrpc::netrpc::composite
