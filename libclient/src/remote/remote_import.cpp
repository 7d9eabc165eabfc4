// The remote Binding Object: A-stacks in the client's own memory, and a local binding to the network domain behind
// them.
#include "remote_import.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "call/transfer.h"
#include "failover.h"
#include "import/import.h"
#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/client/call/call_scope.h"
#include "lrpc/detail/client/remote/group_call.h"
#include "lrpc/detail/shim/binder/told_text.h"
#include "lrpc/detail/shim/call/packed_image.h"
#include "lrpc/detail/shim/system/little_endian.h"
#include "network_path.client.h"

namespace lrpc::client {
namespace {

namespace wire = lrpc::netpath::NetworkPath;
constexpr std::size_t kMostReplies = wire::layout::kCallAll_replies.bound;
using shim::LinkageRecord;
using shim::PackedShape;
using std::chrono::milliseconds;

/// The size of the interface's largest packed image, and the procedure that has it.
struct Largest {
  std::uint64_t size = 0;
  std::string_view procedure;
  void consider(std::uint64_t other, std::string_view name) {
    if (other > size || procedure.empty()) {
      size = other;
      procedure = name.substr(0, shim::kMaxNameLength);
    }
  }
};

/// The server's end of the Binding Object's bell. To hang it up ends the binding in the same way as a server's death.
/// Shared with the inner binding's on_revoked, which may run while all this is being destroyed.
struct ServersEnd {  // a type of ours, see __tsan_default_suppressions()
  UniqueFd fd;
  void hang_up() const noexcept { ::shutdown(fd.get(), SHUT_RDWR); }
};
using HangUp = std::shared_ptr<const ServersEnd>;

class NetworkedPath final : public RemotePath {
 public:
  NetworkedPath(const Pdl& pdl, wire::Client inner, const wire::BindResults& bound, HangUp end, std::size_t astacks,
                std::size_t in, std::size_t out)
      : pdl_(pdl),
        inner_(std::move(inner)),
        bound_(bound),
        end_(std::move(end)),
        slots_(astacks),
        most_in_(in),
        most_out_(out) {}

  std::uint16_t call(std::uint16_t procedure, LinkageRecord& linkage) noexcept override {
    if (!carries(procedure)) return refuse(procedure, linkage);
    const auto image = packed(procedure, linkage);
    if (!image) return failed(Errc::call_failed);
    Buffer results(results_of(linkage));
    return settle(procedure, linkage, inner_.Call(bound_.path, procedure, limit_ms(), *image, results), results);
  }

  std::uint16_t send(std::uint16_t procedure, LinkageRecord& linkage) noexcept override {
    if (!carries(procedure)) return refuse(procedure, linkage);
    const auto image = packed(procedure, linkage);
    if (!image) return failed(Errc::call_failed);
    const auto sent = inner_.Send(bound_.path, procedure, *image);
    return sent ? std::uint16_t{0} : failed(for_caller(sent.code()));
  }

  Result<GroupReplies> call_all(std::uint16_t procedure, LinkageRecord& linkage) noexcept override {
    if (!bound_.to_group) return Errc::not_supported;
    const auto image = packed(procedure, linkage);
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[kMostReplies]);
    if (!image || memory == nullptr) return Errc::system_error;
    Buffer replies({memory.get(), kMostReplies});
    const auto result = inner_.CallAll(bound_.path, procedure, limit_ms(), *image, replies);
    if (!result) return GroupReplies(failed(for_caller(result.code())), 0, std::move(memory), 0);
    return GroupReplies(result->status, result->members, std::move(memory), replies.size());
  }
  std::uint16_t put_reply(std::uint16_t procedure, LinkageRecord& linkage, std::uint16_t status,
                          std::span<const std::byte> image) noexcept override {
    if (shim::call_status::told(status)) {
      const shim::AStack& astack = linkage.astack;
      const bool put = shim::put_told(shim::told_room(astack.image, astack.limit),
                                      {reinterpret_cast<const char*>(image.data()), image.size()});
      return put ? status : static_cast<std::uint16_t>(status & ~shim::call_status::kTold);
    }
    if ((status & shim::call_status::kFailed) != 0) return status;
    const auto shape = PackedShape::of_status(pdl_.procedures[procedure], status);
    if (!shape || !unpack(*shape, image, linkage.astack)) return failed(Errc::call_failed);
    return status;
  }

  Errc start(std::uint16_t procedure, LinkageRecord& linkage) noexcept override {
    Slot& slot = slot_of(linkage);
    if (!carries(procedure)) {  // finish() refuses it: the call keeps the A-stack, where the text lies
      slot.procedure = procedure;
      slot.started.emplace(Errc::not_supported);
      return Errc::ok;
    }
    const auto image = packed(procedure, linkage);
    if (!image) return Errc::call_failed;
    slot.results = Buffer(results_of(linkage));
    auto started = inner_.start().Call(bound_.path, procedure, limit_ms(), *image, slot.results);
    if (const auto& call = detail::StubAccess::call(started); !call.taken()) return for_caller(call.error());
    slot.procedure = procedure;
    slot.started.emplace(std::move(started));
    return Errc::ok;
  }
  PendingCall& started(const LinkageRecord& linkage) noexcept override {
    return detail::StubAccess::call(*slot_of(linkage).started);
  }
  std::uint16_t finish(LinkageRecord& linkage) noexcept override {
    Slot& slot = slot_of(linkage);
    if (!carries(slot.procedure)) {
      slot.started.reset();
      return refuse(slot.procedure, linkage);
    }
    if (owner_->revoked() && !slot.started->ready()) {  // ready() was true for this reason: do not wait
      slot.started.reset();
      return failed(Errc::call_failed);
    }
    auto result = slot.started->finish();
    slot.started.reset();
    return settle(slot.procedure, linkage, std::move(result), slot.results);
  }
  void drop(LinkageRecord& linkage) noexcept override { slot_of(linkage).started.reset(); }
  void let_go() noexcept override { detail::StubAccess::object(inner_.binding()).end(); }

  bool grow(std::uint16_t place) noexcept override {
    secondary_slots_[place].reset(new (std::nothrow) Slot[shim::kMostAStacksInSecondary]);
    return secondary_slots_[place] != nullptr;
  }
  void shrink(std::uint16_t place) noexcept override { secondary_slots_[place].reset(); }

  /// Limits our own wait, if the network domain does not answer; limit_ms() reads it, to tell the network domain.
  void set_call_timeout(milliseconds timeout) noexcept override {
    detail::StubAccess::object(inner_.binding()).set_call_timeout(timeout);
  }

  /// Call it once, before the first call, with the Binding Object that owns this.
  void belong_to(BindingObject& owner) noexcept { owner_ = &owner; }

 private:
  /// What belongs to one A-stack while a call holds it.
  struct Slot {
    std::unique_ptr<std::byte[]> memory;  ///< The packed arguments, then the packed results. Made by the first call.
    std::optional<Pending<wire::Call_outcome>> started;
    Buffer results;
    std::uint16_t procedure = 0;
  };

  [[nodiscard]] Slot& slot_of(const LinkageRecord& linkage) noexcept {
    if (linkage.index < slots_.size()) [[likely]]
      return slots_[linkage.index];
    const std::size_t within = linkage.index - slots_.size();
    return secondary_slots_[within / shim::kMostAStacksInSecondary][within % shim::kMostAStacksInSecondary];
  }
  /// The time that a call has left, as the network domain is told. Rounded up: our own wait keeps the exact limit. 0:
  /// no limit.
  [[nodiscard]] std::uint32_t limit_ms() noexcept {
    const milliseconds timeout = detail::StubAccess::object(inner_.binding()).call_timeout();
    const auto left = CallScope::remaining();
    if (!left) return timeout == kNoLimit ? 0 : shim::ImportRequest::wire_timeout(timeout);
    const milliseconds rounded = std::max(std::chrono::ceil<milliseconds>(*left), milliseconds(1));
    return shim::ImportRequest::wire_timeout(std::min(timeout, rounded));
  }

  /// Whether the path can carry this procedure. Handles do not go to a group: a handle belongs to one server, but each
  /// member would resolve it, or grant it, for itself.
  [[nodiscard]] bool carries(std::uint16_t procedure) const noexcept {
    return !bound_.to_group || !pdl_.procedures[procedure].handles;
  }
  /// The call status of a call that carries() has refused. Writes the text onto the A-stack, with as much of the
  /// procedure's name as fits.
  [[nodiscard]] std::uint16_t refuse(std::uint16_t procedure, const LinkageRecord& linkage) const noexcept {
    std::array<char, shim::kMostTold + 1> text{};
    const std::string_view of = pdl_.interface.name;
    const std::string_view name = pdl_.procedures[procedure].name;
    (void)std::snprintf(text.data(), text.size(),
                        "handles do not go to groups, import from one host: procedure %.*s.%.*s",
                        static_cast<int>(of.size()), of.data(), static_cast<int>(name.size()), name.data());
    const shim::AStack& astack = linkage.astack;
    const bool put = shim::put_told(shim::told_room(astack.image, astack.limit), text.data());
    return static_cast<std::uint16_t>(failed(Errc::not_supported) | (put ? shim::call_status::kTold : 0));
  }

  [[nodiscard]] std::optional<std::span<const std::byte>> packed(std::uint16_t procedure,
                                                                 const LinkageRecord& linkage) noexcept {
    Slot& slot = slot_of(linkage);
    if (slot.memory == nullptr) slot.memory.reset(new (std::nothrow) std::byte[most_in_ + most_out_]);
    if (slot.memory == nullptr) return std::nullopt;
    const std::span<std::byte> room(slot.memory.get(), most_in_);
    const auto size = pack(PackedShape::of_call(pdl_.procedures[procedure]), linkage.astack, room);
    if (!size) return std::nullopt;
    return room.first(*size);
  }
  [[nodiscard]] std::span<std::byte> results_of(const LinkageRecord& linkage) noexcept {
    return {slot_of(linkage).memory.get() + most_in_, most_out_};
  }

  /// Ends a call: returns its status, and unpacks what belongs to the status onto the A-stack.
  std::uint16_t settle(std::uint16_t procedure, LinkageRecord& linkage, Result<wire::CallResults> result,
                       const Buffer& results) noexcept {
    if (!result) return failed(for_caller(result.code()));
    if (result->ended) end();
    return put_reply(procedure, linkage, result->status, results.contents());
  }

  /// The error for our caller when the call to the network domain itself failed. An error that concerns only our
  /// arguments to the network domain becomes call_failed. If the network domain is gone, ends the binding.
  Errc for_caller(Errc code) noexcept {
    if (inner_.binding().revoked()) end();
    const bool ours = code == Errc::call_aborted || code == Errc::call_cancelled || code == Errc::binding_revoked ||
                      code == Errc::limit_reached || code == Errc::no_astack;
    return ours ? code : Errc::call_failed;
  }

  /// Ends the binding: no further call reaches the server. The watcher tells the program, as it does of a dead server.
  void end() noexcept {
    end_->hang_up();
    owner_->revoke();
  }

  const Pdl& pdl_;
  BindingObject* owner_ = nullptr;
  wire::Client inner_;
  const wire::BindResults bound_;
  const HangUp end_;
  std::vector<Slot> slots_;
  std::array<std::unique_ptr<Slot[]>, shim::kMostSecondaryRegions> secondary_slots_;
  const std::size_t most_in_;
  const std::size_t most_out_;
};

Status check(std::string_view name, std::string_view host, const Pdl& pdl, const ImportOptions& options) {
  if (!shim::valid_name(name)) return shim::not_a_name(name, " in front of the '@'");
  if (host.size() > shim::kMaxNameLength)
    return Error{Errc::invalid_argument, "behind the '@' there is to be a host: an IPv4 address or a name of one"};
  if (options.gate == Gate::trap || options.gate == Gate::none || in_sealed_domain()) {
    return Error{Errc::not_supported,
                 "a remote binding has no gate of its own: neither a sealed domain nor a binding within "
                 "one thread can have one"};
  }
  if (Status sound = check_options(options, false); !sound) return sound.error();
  if (pdl.procedures.empty()) return Error{Errc::invalid_argument, "an interface without procedures"};
  return {};
}

/// Makes a local binding to the network domain. Only one remote binding uses it, with `astacks` A-stacks of its own.
Result<wire::Client> import_network(const ImportOptions& options, const HangUp& end, std::size_t astacks) {
  ImportOptions inner;
  inner.nameserver = options.nameserver;
  inner.watcher = options.watcher;
  // Each call of a remote A-stack takes one of Call()'s until it is finished: no call may wait here for another one.
  const std::size_t most = std::ranges::max(wire::kPdl.classes, {}, &AStackClass::count).count;
  inner.supply = astacks <= most ? options.supply : AStackSupply::grow;
  inner.gate = options.gate;
  if (options.watcher) inner.on_revoked = [end] { end->hang_up(); };
  auto client = wire::Client::import(shim::kNetworkName, inner);
  const Errc code = client.code();
  if (code == Errc::interface_mismatch || code == Errc::version_mismatch || code == Errc::hash_mismatch)
    return Error{Errc::version_mismatch, "lrpc-netd and this program are of different versions of lrpc"};
  if (code != Errc::name_unknown) return client;
  return Error{Errc::remote_unavailable,
               "no network domain here: start lrpc-netd with the same nameserver (as root or with CAP_NET_RAW, or "
               "over UDP without)"};
}

/// Sends the declaration only if the network domain asks for it (DeclarationWanted).
Result<wire::BindResults> bind_path(wire::Client& inner, std::string_view name, std::string_view host, const Pdl& pdl,
                                    const ImportOptions& options, const Largest& call, const Largest& result) {
  constexpr std::string_view kDidNot = "lrpc-netd did not bind";
  const std::uint32_t wait_ms = shim::ImportRequest::wire_timeout(options.timeout.value_or(kDoNotWait));
  const auto bound = inner.Bind(name, host, pdl.interface.name, pdl.interface.major, pdl.interface.minor,
                                pdl.interface.hash, wait_ms, static_cast<std::uint32_t>(call.size), call.procedure,
                                static_cast<std::uint32_t>(result.size), result.procedure);
  if (bound) return *bound;
  if (bound.raised<wire::DeclarationWanted>() == nullptr) return why_refused<wire::Refused>(bound, kDidNot);
  constexpr std::size_t kMost = wire::layout::kBindDeclared_declaration.bound;
  if (pdl.text.size() > kMost)
    return Error{Errc::limit_reached, "the declaration of interface " + std::string(pdl.interface.name) + " has " +
                                          std::to_string(pdl.text.size()) + " bytes, and " + std::to_string(kMost) +
                                          " are the most with which this name is imported"};
  const auto declaration = std::as_bytes(std::span(pdl.text.data(), pdl.text.size()));
  const auto declared = inner.BindDeclared(name, host, wait_ms, declaration);
  if (!declared) return why_refused<wire::Refused>(declared, kDidNot);
  return wire::BindResults{.path = *declared, .to_group = false};
}

Result<Binding> make(wire::Client inner, const wire::BindResults& bound, HangUp end, UniqueFd bell, const Pdl& pdl,
                     const ImportOptions& options, std::size_t most_in, std::size_t most_out) {
  auto layout = shim::RegionLayout::of(pdl.classes);
  if (!layout) return layout.error();
  auto region = shim::Region::private_to_this_domain(*std::move(layout));
  if (!region) return region.error();
  detail::StubAccess::object(inner.binding()).set_call_timeout(options.call_timeout);

  BindingParts parts;
  parts.server = shim::kNobodyHere;
  parts.region = *std::move(region);
  parts.bell = shim::PeerSocket(std::move(bell), shim::PeerSocket::Made::here, {});
  parts.supply = options.supply;
  parts.grown_idle = options.grown_idle;
  parts.call_timeout = options.call_timeout;
  parts.watched = options.watcher;
  parts.on_revoked = options.on_revoked;
  auto remote = std::make_unique<NetworkedPath>(pdl, std::move(inner), bound, std::move(end),
                                                parts.region.layout().astack_count(), most_in, most_out);
  NetworkedPath& networked = *remote;
  parts.remote = std::move(remote);
  auto object = BindingObject::create(std::move(parts));
  if (!object) return object.error();
  networked.belong_to(**object);
  return detail::StubAccess::bind<Binding>(*std::move(object));
}

}  // namespace

Result<Binding> import_remote(std::string_view name, const Pdl& pdl, const ImportOptions& options) {
  const std::size_t at = name.rfind('@');
  const std::string_view host = name.substr(at + 1);
  name = name.substr(0, at);
  if (Status sound = check(name, host, pdl, options); !sound) return sound.error();
  if (host.empty()) return import_by_directory(name, pdl, options);
  // An import has its own timeout: the caller's scopes do not limit the calls that it makes.
  const CallScope own(fresh, patience_with_network(options.timeout.value_or(kDoNotWait)));
  Largest call;
  Largest result;
  for (const ProcedureDescriptor& procedure : pdl.procedures) {
    call.consider(PackedShape::of_call(procedure).most(), procedure.name);
    result.consider(shim::most_returned(procedure), procedure.name);
  }

  auto ends = shim::make_socket_pair();
  if (!ends) return ends.error();
  HangUp end = std::make_shared<const ServersEnd>(ServersEnd{std::move(ends->second)});
  std::size_t astacks = 0;
  for (const AStackClass& one : pdl.classes) astacks += one.count;
  auto inner = import_network(options, end, astacks);
  if (!inner) return inner.error();
  auto bound = bind_path(*inner, name, host, pdl, options, call, result);
  if (!bound) return bound.error();
  return make(*std::move(inner), *bound, std::move(end), std::move(ends->first), pdl, options, call.size,
              std::max<std::size_t>(result.size, shim::kMostTold));
}

}  // namespace lrpc::client

namespace lrpc {

std::string GroupMember::str() const {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8)
    text += (text.empty() ? "" : ".") + std::to_string(address >> shift & 0xff);
  return text;
}

}  // namespace lrpc
