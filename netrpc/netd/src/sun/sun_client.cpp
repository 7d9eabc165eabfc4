#include "sun/sun_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <initializer_list>

#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/binder/told_text.h"
#include "lrpc/netrpc/session_cache.h"
#include "lrpc/stubgen/layout/xdr_subset.h"
#include "waiting_here.h"
#include "xdr_values.h"

namespace lrpc::netd {
namespace {

using netrpc::Duration;
using netrpc::Message;
using netrpc::Shepherd;
using std::chrono::milliseconds;

/// How long an import waits for the answers of rpcbind and of the program.
constexpr Duration kPatience = std::chrono::seconds(5);
/// How often a thread that waits for another one's question checks whether its caller has gone.
constexpr Duration kLook = milliseconds(250);
/// Requests under way may take the host's buffers divided by this; one user gets half of that.
constexpr std::size_t kPartOfBuffers = 8;

// ---- what a client that knows nothing of Sun RPC is told of a failed call ----

bool is_one_of(Errc code, std::initializer_list<Errc> codes) noexcept {
  return std::ranges::find(codes, code) != codes.end();
}

/// The error of an import whose question to the program had this outcome.
Errc import_error(Errc outcome) noexcept {
  const bool tells = is_one_of(outcome, {Errc::name_unknown, Errc::version_mismatch, Errc::not_permitted,
                                         Errc::not_supported, Errc::message_too_long, Errc::limit_reached});
  return tells ? outcome : Errc::remote_unavailable;
}

/// The error of a call with this outcome of Transaction::completed() or SunClient::call(): one that a procedure may
/// return about its own call.
Errc call_error(Errc outcome) noexcept {
  if (outcome == Errc::call_cancelled) return Errc::call_aborted;
  const bool tells =
      is_one_of(outcome, {Errc::call_aborted, Errc::call_lost, Errc::bad_procedure, Errc::argument_out_of_range,
                          Errc::not_permitted, Errc::not_supported, Errc::message_too_long, Errc::limit_reached});
  return tells ? outcome : Errc::call_failed;  // an earlier copy of the request may have been executed
}

/// One line for a person. `version`: of the program, as it was called; `reply`: what came with a version_mismatch,
/// hostile. Empty: the code says it all.
std::string why_failed(Errc outcome, std::uint32_t version, std::span<const std::byte> reply) {
  switch (outcome) {
    case Errc::name_unknown: return "Sun RPC: the program is not there (PROG_UNAVAIL)";
    case Errc::version_mismatch: {
      netrpc::XdrReader reader(reply);
      const std::uint32_t lowest = reader.word();
      const std::uint32_t highest = reader.word();
      if (!reader.at_end()) return "Sun RPC: the program is there in other versions (PROG_MISMATCH)";
      return fmt::format("Sun RPC: the program is there in versions {} to {}, not {} (PROG_MISMATCH)", lowest, highest,
                         version);
    }
    case Errc::bad_procedure: return "Sun RPC: the program has no such procedure (PROC_UNAVAIL)";
    case Errc::argument_out_of_range: return "Sun RPC: the server cannot decode the arguments (GARBAGE_ARGS)";
    case Errc::not_permitted: return "Sun RPC: the server refuses the credential (AUTH_ERROR)";
    case Errc::not_supported: return "Sun RPC: the server speaks another version of RPC (RPC_MISMATCH)";
    case Errc::host_unreachable: return "Sun RPC: there is no way to the host";
    case Errc::message_too_long: return "Sun RPC: the arguments are longer than a message";
    case Errc::call_failed: return "Sun RPC: the server does not answer, or has failed (SYSTEM_ERR)";
    case Errc::call_aborted:
    case Errc::call_cancelled: return {};
    default: return "Sun RPC: " + std::string(describe(outcome));
  }
}

/// Whether the program may have another port by now.
bool may_have_moved(Errc outcome) noexcept {
  return is_one_of(outcome, {Errc::call_failed, Errc::call_aborted, Errc::call_cancelled, Errc::name_unknown,
                             Errc::version_mismatch});
}

}  // namespace

// ---- a client's binding ----

class SunClient::Binding final : public netpath::ForeignBinding {
 public:
  Binding(SunClient& client, uid_t user, Place place, bool asks, std::string at,
          std::shared_ptr<const stubgen::Interface> declared)
      : client_(client),
        user_(user),
        place_(place),
        asks_(asks),
        at_(std::move(at)),
        port_(place.port),
        interface_(std::move(declared)) {}

  Returned call(const CallContext* caller, std::uint16_t number, std::span<const std::byte> image, milliseconds limit,
                std::span<std::byte> results) noexcept override {
    bool sent = false;
    try {
      return call(caller, number, image, limit, results, sent);
    } catch (...) {  // out of memory
      return {server::failed(sent ? Errc::call_failed : Errc::limit_reached), 0};
    }
  }

 private:
  /// `sent`: as SunClient::call() has it.
  Returned call(const CallContext* caller, std::uint16_t number, std::span<const std::byte> image, milliseconds limit,
                std::span<std::byte> results, bool& sent) {
    if (number >= interface_->procedures.size()) return {server::failed(Errc::bad_procedure), 0};
    if (client_.host().short_of_memory()) return {server::failed(Errc::limit_reached), 0};
    const Asker asker{user_, caller, limit.count() == 0 ? netrpc::Time::max() : client_.host().now() + limit};
    const stubgen::Procedure& procedure = interface_->procedures[number];
    netrpc::XdrWriter arguments;
    if (!write_arguments(procedure, image, arguments)) return {server::failed(Errc::argument_out_of_range), 0};
    Place place = place_;
    if (Status known = find_port(place, asker); !known) return told(known.code(), known.error().message(), results);
    std::vector<std::byte> bytes;
    const Errc outcome = client_.call(place, stubgen::xdr_number(number), std::move(arguments), asker, bytes, sent);
    if (outcome != Errc::ok) {
      if (asks_ && may_have_moved(outcome)) port_ = 0;
      return told(call_error(outcome), why_failed(outcome, place.version, bytes), results);
    }
    sun::Scratch scratch;
    std::vector<std::byte> packed;
    const auto status = sun::pack_results(procedure, bytes, scratch, packed);
    if (!status || packed.size() > results.size())
      return told(Errc::bad_result, "Sun RPC: the server's results are not those of the declaration", results);
    if (!packed.empty()) std::memcpy(results.data(), packed.data(), packed.size());
    return {*status, packed.size()};
  }
  /// Frees everything but `arguments`, as the call may wait long. False: as sun::unpack_arguments().
  [[nodiscard]] static bool write_arguments(const stubgen::Procedure& procedure, std::span<const std::byte> image,
                                            netrpc::XdrWriter& arguments) {
    sun::Scratch scratch;
    return sun::unpack_arguments(procedure, image, scratch, arguments);
  }
  /// Asks rpcbind if the port is not known: a server that was started again may have another port.
  [[nodiscard]] Status find_port(Place& place, const Asker& asker) {
    place.port = port_;
    if (place.port != 0) return {};
    const auto port = client_.ask_rpcbind(place, at_, client_.patient(asker));
    if (!port) {
      const bool late = client_.host().now() >= asker.until || port.code() == Errc::call_cancelled;
      return Error{late ? Errc::call_aborted : call_error(port.code()), port.error().message()};
    }
    port_ = place.port = *port;
    return {};
  }
  [[nodiscard]] static Returned told(Errc code, std::string_view text, std::span<std::byte> results) noexcept {
    const std::size_t size = std::min({text.size(), results.size(), shim::kMostTold});
    if (size == 0) return {server::failed(code), 0};
    std::memcpy(results.data(), text.data(), size);
    return {static_cast<std::uint16_t>(server::failed(code) | shim::call_status::kTold), size};
  }

  SunClient& client_;
  const uid_t user_;
  const Place place_;
  const bool asks_;  ///< Asks rpcbind for the port.
  const std::string at_;
  std::atomic<std::uint16_t> port_;  ///< 0: not known, ask for it.
  const std::shared_ptr<const stubgen::Interface> interface_;
};

// ---- binding ----

SunClient::SunClient(netrpc::Host& host, Below below, std::vector<SunImport> imports)
    : Protocol(host, "lrpc-netd-sun-client"), below_(below), imports_(std::move(imports)) {}

/// The session is never used: no message goes to that host.
Status SunClient::open_sockets() {
  if (below_.udp == nullptr) return {};
  netrpc::ParticipantSet anywhere;
  anywhere.remote.host = {0x7f000001};
  anywhere.remote.port = 1;
  anywhere.remote.program = 1;
  const auto opened = below_.udp->open(*this, anywhere);
  return opened || opened.code() == Errc::host_unreachable ? Status() : Status(opened.error());
}

void SunClient::stop_calling() noexcept {
  const Shepherd inside(host().monitor());
  calling_ = false;
  host().engine().wake(host());
}

const SunImport* SunClient::find(std::string_view name, std::string_view host) const noexcept {
  const auto found =
      std::ranges::find_if(imports_, [&](const SunImport& one) { return one.name == name && one.host == host; });
  return found != imports_.end() ? &*found : nullptr;
}

bool SunClient::knows(std::string_view name, std::string_view host) const noexcept {
  return find(name, host) != nullptr;
}

Result<std::unique_ptr<netpath::ForeignBinding>> SunClient::bind(Wanted& wanted) {
  if (host().short_of_memory()) return Error{Errc::limit_reached, "this machine's network domain is short of memory"};
  const SunImport& import = *find(wanted.name, wanted.host);
  auto declared = declarations_.compiled(wanted.user, wanted.declaration);
  if (!declared) return declared.error();
  wanted.kept = *declared;  // as long as somebody refers to it, it is not compiled again
  const stubgen::Interface& interface = **declared;
  if (import.version != 0 && import.version != interface.major)
    return Error{Errc::version_mismatch,
                 fmt::format("'{}@{}' is version {} of a Sun RPC program, and the interface {} {}", wanted.name,
                             wanted.host, import.version, interface.name, interface.major)};
  Place place{
      {wanted.address}, import.port, import.program, static_cast<std::uint32_t>(interface.major), import.transport};
  const std::string at = "host '" + wanted.host + "'";
  if (import.port == 0) {
    const auto port = ask_rpcbind(place, at, patient({.user = wanted.user}));
    if (!port) return port.error();
    place.port = *port;
  }
  if (Status small = fits(interface, place, at); !small) return small.error();
  if (Status there = ping(place, at, wanted.user); !there) return there.error();
  return std::make_unique<Binding>(*this, wanted.user, place, import.port == 0, at, *std::move(declared));
}

SunClient::Asker SunClient::patient(const Asker& asker) const {
  return {asker.user, asker.caller, std::min(asker.until, host().now() + kPatience)};
}

/// A question to rpcbind. Others with the same question wait for its end.
class SunClient::Asking {
 public:
  using Question = std::pair<sun::FoundPorts::Program, std::uint32_t>;
  Asking(SunClient& client, Question question) : client_(client), question_(question) {}
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() {
    if (!begun_) return;
    const Shepherd inside(client_.host().monitor());
    client_.asking_.erase(question_);
    client_.host().engine().wake(client_.host());
  }
  /// Blocks while another one asks the same. Returns the answer if a fresh one is known; else begins the question: see
  /// begun(). Errors: call_aborted (the deadline), call_cancelled.
  [[nodiscard]] Result<std::uint16_t> begin(const Asker& asker) {
    netrpc::Host& host = client_.host();
    const Shepherd inside(host.monitor());
    const auto late = [&] { return client_.gone(asker) || host.now() >= asker.until; };
    const auto ready = [&] { return !client_.asking_.contains(question_) || late(); };
    while (!ready()) (void)host.engine().wait(host, ready, std::min(asker.until, host.now() + kLook));
    if (client_.asking_.contains(question_)) return client_.gone(asker) ? Errc::call_cancelled : Errc::call_aborted;
    if (const auto said = client_.ports_.fresh(question_.first, question_.second, host.now()))
      return said->why_not == Errc::ok ? Result<std::uint16_t>(said->port) : said->why_not;
    begun_ = client_.asking_.insert(question_).second;
    return std::uint16_t{0};
  }
  [[nodiscard]] bool begun() const noexcept { return begun_; }

 private:
  SunClient& client_;
  const Question question_;
  bool begun_ = false;
};

Result<std::uint16_t> SunClient::ask_rpcbind(const Place& place, const std::string& at, const Asker& asker) {
  const WaitingHere here;
  const sun::FoundPorts::Program program{place.host, place.program, place.transport};
  Asking asking(*this, {program, place.version});
  auto port = asking.begin(asker);
  if (asking.begun()) {
    port = netrpc::rpcbind_port(below(place.transport), *this, place.host, place.program, place.version,
                                asker.until - host().now(), place.transport, [&] { return gone(asker); });
    // An answer that makes no sense is one, too: rpcbind is not asked again at once.
    const bool not_asked =
        port.code() == Errc::call_aborted || port.code() == Errc::call_cancelled || port.code() == Errc::limit_reached;
    if (!not_asked) {
      const Shepherd inside(host().monitor());
      if (!ports_.note(program, place.version, {port ? *port : std::uint16_t{0}, port.code()}, host().now()))
        return Error{Errc::remote_unavailable, at + ": rpcbind names another port too often"};
    }
  }
  if (port) return port;
  if (port.code() == Errc::name_unknown)
    return Error{Errc::name_unknown,
                 fmt::format("{}: rpcbind does not know the Sun RPC program {:#x}", at, place.program)};
  if (port.code() == Errc::call_cancelled) return port;
  if (port.code() == Errc::limit_reached)
    return Error{port.code(), at + ": rpcbind could not be asked, for this machine's network domain is at a limit of "
                                   "its own"};
  return Error{Errc::remote_unavailable, at + ": " + port.error().message()};
}

Status SunClient::fits(const stubgen::Interface& interface, const Place& place, const std::string& at) {
  netrpc::control::MaximumMessage carried;
  {
    const Shepherd inside(host().monitor());
    if (netrpc::control::ask(below(place.transport), carried) != Errc::ok) return {};
  }
  sun::ArgumentSizes sizes;
  for (const stubgen::Procedure& procedure : interface.procedures)
    if (const std::uint64_t most = sizes.most(procedure); most > carried.size)
      return Error{
          Errc::message_too_long,
          fmt::format(
              "procedure {}.{}: its arguments may take {} bytes in XDR, and {} are the most that go to {}: {} too "
              "many",
              interface.name, procedure.name, most, carried.size, at, most - carried.size)};
  return {};
}

/// Procedure 0 of every program does nothing (RFC 5531 §12.1).
Status SunClient::ping(const Place& place, const std::string& at, uid_t user) {
  std::vector<std::byte> reply;
  bool sent = false;
  const Errc outcome = call(place, 0, {}, patient({.user = user}), reply, sent);
  if (outcome == Errc::ok) return {};
  if (outcome == Errc::call_aborted)
    return Error{Errc::remote_unavailable, fmt::format("{} does not answer Sun RPC at port {}", at, place.port)};
  return Error{import_error(outcome), at + ": " + why_failed(outcome, place.version, reply)};
}

// ---- calls ----

Errc SunClient::call(const Place& place, std::uint32_t number, netrpc::XdrWriter arguments, const Asker& asker,
                     std::vector<std::byte>& reply, bool& sent) {
  netrpc::ParticipantSet to;
  to.remote.host = place.host;
  to.remote.port = place.port;
  to.remote.program = place.program;
  to.remote.version = place.version;
  to.remote.procedure = number;
  const WaitingHere here;
  const Shepherd inside(host().monitor());
  if (!calling_) return Errc::call_failed;
  const auto session = below(place.transport).open(*this, to);
  if (!session) return session.code();
  Message request = Message::copy_of_long(host().pool(), arguments.bytes());
  arguments = {};
  if (!request.allocated()) return Errc::limit_reached;
  const std::size_t most = host().pool().limit() / kPartOfBuffers;
  const auto part = buffers_.take_within(most / 2, asker.user, request.footprint(), most);
  if (!part) return Errc::limit_reached;
  const Duration left = asker.until == netrpc::Time::max() ? Duration(kNoLimit) : asker.until - host().now();
  Message answer;
  sent = true;
  const Errc outcome =
      netrpc::call_and_wait_inside(**session, std::move(request), answer, left, [&] { return gone(asker); });
  if (outcome == Errc::call_cancelled && !calling_) return Errc::call_failed;
  reply.resize(answer.size());
  answer.copy_to(reply);
  return outcome;
}

}  // namespace lrpc::netd
