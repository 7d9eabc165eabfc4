#include "netrpc/sim/storm_application.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/sim/storm_bound.h"

namespace lrpc::netrpc::storm {

namespace {

constexpr std::size_t kRequestHeader = 16;
constexpr std::uint64_t kRequestSalt = 1;
constexpr std::uint64_t kReplySalt = 2;
constexpr std::size_t kViolationsKept = 10;

/// The eight bytes at offset `i` of a call's data.
std::uint64_t pattern(std::uint64_t call, std::uint64_t salt, std::size_t i) noexcept {
  return (call * 2 + salt) * 0x9e3779b97f4a7c15ULL + i * 0xd6e8feb86659fd93ULL;
}
void fill(std::byte* to, std::size_t size, std::uint64_t call, std::uint64_t salt) noexcept {
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = pattern(call, salt, i);
    std::memcpy(to + i, &word, std::min<std::size_t>(8, size - i));
  }
}
/// Whether `message` is the call's data. It may have several slices.
bool filled(Message& message, std::uint64_t call, std::uint64_t salt) noexcept {
  if (!message.flatten()) return true;  // no memory to check it
  const std::span<const std::byte> bytes = message.bytes();
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    if (word != pattern(call, salt, i)) return false;
  }
  const std::uint64_t last = pattern(call, salt, i);
  return bytes.size() == i || std::memcmp(bytes.data() + i, &last, bytes.size() - i) == 0;
}

}  // namespace

// ---- the ledger ----

std::string Ledger::name(std::uint64_t call) const {
  const CallRecord& record = records_[call];
  return fmt::format("call {} of {} to {}", call, world_.host(record.client).name(), world_.host(record.server).name());
}

void Ledger::violation(std::string text) {
  ++report_.violation_count;
  world_.note("VIOLATION: " + text);
  if (report_.violations.size() < kViolationsKept) report_.violations.push_back(std::move(text));
}

bool Ledger::begin(std::uint16_t client, std::uint16_t server, std::uint64_t& call) {
  if (begun_ == options_.calls) return false;
  call = ++begun_;
  ++under_way_;
  records_[call] = {CallRecord::State::under_way, 0, false, client, server, Time::max()};
  if (world_.traced()) world_.note(name(call) + " begins");
  return true;
}

void Ledger::executed(std::uint64_t call, std::uint16_t server, bool right_request) {
  ++report_.executed;
  if (corrupts()) return;  // then no bytes of a message are reliable
  if (call == 0 || call > begun_) return violation(fmt::format("a call {} was executed that nobody has made", call));
  CallRecord& record = records_[call];
  if (record.executions < 255) ++record.executions;
  if (world_.traced()) world_.note(name(call) + " is executed");
  if (record.executions > 1 && !options_.repeats)
    violation(fmt::format("{} was executed {} times", name(call), record.executions));
  if (record.must_not_execute) violation(name(call) + " was executed after its client was told that it was not");
  if (record.server != server) violation(name(call) + " was executed by " + world_.host(server).name());
  if (!right_request) violation(name(call) + ": the server has got other bytes than were sent");
}

void Ledger::ended(std::uint64_t call, Errc outcome, bool right_reply) {
  CallRecord& record = records_[call];
  if (world_.traced()) world_.note(fmt::format("{} ends: {}", name(call), describe(outcome)));
  if (record.state != CallRecord::State::under_way) return violation(name(call) + " has ended twice");
  record.state = CallRecord::State::ended;
  --under_way_;
  if (world_.now() > record.must_end) violation(name(call) + " has ended long after its timeout");
  switch (outcome) {
    case Errc::ok:
      ++report_.answered;
      if (corrupts()) return;
      if (record.executions == 0) violation(name(call) + " was answered without having been executed");
      if (!right_reply) violation(name(call) + ": the reply has other bytes than the server has sent");
      return;
    case Errc::call_failed:
    case Errc::call_lost: ++report_.failed; return;
    case Errc::call_aborted: ++report_.aborted; return;
    case Errc::host_unreachable:
    case Errc::limit_reached:
      ++report_.not_executed;
      record.must_not_execute = true;
      if (record.executions > 0)
        violation(fmt::format("{} was executed, but its client is told: {}", name(call), describe(outcome)));
      return;
    default:
      if (corrupts()) {  // flipped bits can cause any outcome
        ++report_.failed;
        return;
      }
      violation(fmt::format("{} ended with what is no outcome of a call: {}", name(call), describe(outcome)));
  }
}

void Ledger::abandoned(std::uint64_t call) {
  CallRecord& record = records_[call];
  if (record.state != CallRecord::State::under_way) return;
  record.state = CallRecord::State::abandoned;
  --under_way_;
  ++report_.abandoned;
}

void Ledger::find_hung() {
  for (std::uint64_t call = 1; call <= begun_; ++call)
    if (records_[call].state == CallRecord::State::under_way) violation(name(call) + " hangs");
  if (begun_ < options_.calls)
    violation(fmt::format("{} calls were never begun: their callers have stopped", options_.calls - begun_));
}

void Ledger::count_failed(std::uint64_t crashes) {
  report_.most_failing = corrupts() ? 1 : most_failing(options_, crashes);
  const std::uint64_t failed = report_.failed + report_.aborted + report_.not_executed;
  const auto counted = static_cast<double>(options_.calls - report_.abandoned);
  const double most = report_.most_failing;
  if (static_cast<double>(failed) > most * counted)
    violation(fmt::format("{} calls have failed: {:.1f} %, of which these faults explain {:.1f} % at most", failed,
                          100 * static_cast<double>(failed) / counted, 100 * most));
}

// ---- client and server ----

StormApplication::StormApplication(Host& host, Ledger& ledger, SimHost& machine, Protocol& top)
    : Protocol(host, "storm"), ledger_(ledger), machine_(machine), top_(top) {
  const StormOptions& options = ledger_.options();
  control::MaximumMessage most{1024};
  (void)control::ask(top_, most);
  largest_ = std::max(std::min(most.size, options.largest), kRequestHeader);
  ParticipantSet anyone{kNumber, {}, {}};
  anyone.local.command = kCommand;
  if (const Status status = top_.open_enable(*this, anyone); !status)
    ledger_.violation(machine_.name() + " cannot serve: " + status.error().message());
  const std::uint32_t hosts = options.hosts;
  for (std::uint32_t i = 0; i < std::min(options.peers, hosts - 1); ++i) {
    // Neighbours on the same Ethernet, and others behind routers.
    const std::uint32_t distance = 1 + (i * std::max(hosts / std::max(options.peers, 1U), 1U) + i % 3) % (hosts - 1);
    peers_.push_back(static_cast<std::uint16_t>((machine_.index() + distance) % hosts));
  }
  sessions_.resize(peers_.size());
  for (std::uint32_t i = 0; i < options.at_once; ++i) callers_.push_back(std::make_unique<Caller>(*this));
}

StormApplication::~StormApplication() {
  for (const auto& caller : callers_) {
    if (!caller->session) continue;
    caller->session->cancel(*caller);
    ledger_.abandoned(caller->call);
  }
  ParticipantSet anyone{kNumber, {}, {}};
  anyone.local.command = kCommand;
  top_.open_disable(*this, anyone);
}

void StormApplication::start() {
  for (const auto& caller : callers_) host().events().schedule(caller->again, Duration(host().random() % 1'000'000));
}

void StormApplication::close() {
  for (SessionRef& session : sessions_) session = {};
}

Errc StormApplication::control(control::Request& request) noexcept {
  if (control::answered(request, control::AdvertisedMaximum{ledger_.options().largest})) return Errc::ok;
  return Protocol::control(request);
}

std::size_t StormApplication::draw_size() {
  const std::uint64_t dice = host().random() % 100;
  const std::size_t most = dice < 75 ? 64 : dice < 93 ? 1400 : largest_;
  return host().random() % (std::min(most, largest_) + 1);
}

Message StormApplication::make_message(std::uint64_t call, std::uint32_t reply_size, std::uint32_t delay,
                                       std::size_t size, std::uint64_t salt) {
  const std::size_t header = salt == kRequestSalt ? kRequestHeader : 0;
  Message message = Message::make(host().pool(), header + size);
  if (!message.allocated()) return message;
  if (header > 0) WireWriter(message.bytes().data()).put(call).put(reply_size).put(delay);
  fill(message.bytes().data() + header, size, call, salt);
  return message;
}

/// Makes calls until one does not end at once.
void StormApplication::next(Caller& caller) {
  for (;;) {
    const std::size_t place = host().random() % peers_.size();
    if (!ledger_.begin(static_cast<std::uint16_t>(machine_.index()), peers_[place], caller.call)) return;
    caller.starting = true;
    caller.ended = false;
    if (!sessions_[place]) {
      ParticipantSet participants{kNumber, {}, {}};
      participants.remote.host = machine_.world().host(peers_[place]).address();
      participants.remote.command = kCommand;
      Result<SessionRef> opened = top_.open(*this, participants);
      if (!opened) {
        ledger_.ended(caller.call, opened.code(), false);
        caller.starting = false;
        return host().events().schedule(caller.again, Duration(1 + host().random() % 10'000'000));
      }
      sessions_[place] = *opened;
    }
    caller.session = sessions_[place];
    const std::size_t size = std::min(draw_size(), largest_ - kRequestHeader);
    caller.reply_size = draw_size();
    // One reply in twenty is late, by up to 20 ms, so that the request may be retransmitted.
    const std::uint32_t delay =
        host().random() % 20 == 0 ? static_cast<std::uint32_t>(host().random() % 20'000'000) : 0;
    Message request =
        make_message(caller.call, static_cast<std::uint32_t>(caller.reply_size), delay, size, kRequestSalt);
    const Duration timeout = host().random() % 10 == 0 ? Duration(kNoLimit) : ledger_.options().timeout;
    if (!(timeout == kNoLimit)) ledger_.limited(caller.call, timeout);
    const SessionRef session = caller.session;
    session->call(std::move(request), caller, timeout);
    caller.starting = false;
    if (!caller.ended || caller.again.waiting()) return;
  }
}

void StormApplication::completed(Caller& caller, Errc outcome, Message reply) noexcept {
  const bool right =
      outcome != Errc::ok || (reply.size() == caller.reply_size && filled(reply, caller.call, kReplySalt));
  reply.clear();
  caller.session = {};
  caller.ended = true;
  ledger_.ended(caller.call, outcome, right);
  if (outcome != Errc::ok) {  // a pause, as the next call may well fail in the same way
    host().events().schedule(caller.again, Duration(1 + host().random() % 10'000'000));
  } else if (!caller.starting) {
    next(caller);
  }
}

void StormApplication::call_demux(Session& lower, Message request) noexcept {
  Message::Header<kRequestHeader> header;
  request.pop(header);
  if (!header) {
    ledger_.executed(0, static_cast<std::uint16_t>(machine_.index()), false);
    return lower.reply(Message(host().pool()));
  }
  WireReader reader(header.bytes);
  const auto call = reader.get<std::uint64_t>();
  const std::size_t size = std::min<std::size_t>(reader.get<std::uint32_t>(), largest_);
  const Duration delay(reader.get<std::uint32_t>());
  ledger_.executed(call, static_cast<std::uint16_t>(machine_.index()), filled(request, call, kRequestSalt));
  request.clear();
  Message reply = make_message(call, 0, 0, size, kReplySalt);
  LateReply* const late = delay.count() == 0 ? nullptr : late_.take(*this);
  if (late == nullptr) return lower.reply(std::move(reply));
  late->session = SessionRef(&lower);
  late->message = std::move(reply);
  host().events().schedule(late->due, delay);
}

void StormApplication::reply_late(LateReply& late) {
  const SessionRef session = std::exchange(late.session, {});
  Message message = std::move(late.message);
  late_.give_back(late);
  session->reply(std::move(message));
}

}  // namespace lrpc::netrpc::storm
