// BOUNDED and UNBOUNDED: how long a call may take, whatever its caller says (§4.2).
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Bounded final : public MicroProtocol {
 public:
  explicit Bounded(MicroParts& parts)
      : parts_(parts), limit_(parts.options.duration("limit", std::chrono::seconds(10))) {
    parts_.handle(kCallBegun, [this](CallId call, const Session* /*session*/) {
      if (!parts_.bound_call(call, limit_)) parts_.end_call(call, Errc::limit_reached);
    });
  }

 private:
  MicroParts parts_;
  const Duration limit_;
};

class Unbounded final : public MicroProtocol {
 public:
  explicit Unbounded(MicroParts& /*parts*/) noexcept {}
};

}  // namespace

MicroKind bounded_kind() {
  MicroKind kind;
  kind.name = "BOUNDED";
  kind.summary = "ends calls that take long";
  kind.needs = {{"GRPC"}};
  kind.excludes = {"UNBOUNDED"};
  kind.imports = {kCallBegun.name};
  kind.options = {{"limit", OptionType::duration, "of each call; 10s"}};
  kind.make = make_micro<Bounded>;
  return kind;
}

MicroKind unbounded_kind() {
  MicroKind kind;
  kind.name = "UNBOUNDED";
  kind.summary = "says that nothing but its caller bounds a call";
  kind.needs = {{"GRPC"}};
  kind.excludes = {"BOUNDED"};
  kind.make = make_micro<Unbounded>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
