#include "daemon.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <linux/capability.h>

#include <algorithm>
#include <utility>

#include "daemon_sandbox.h"
#include "lrpc/daemon.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "lrpc/netrpc/all_kinds.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/graph/check.h"
#include "netrpc/protocols/trace/trace.h"

namespace lrpc::netd {

namespace {
using netrpc::Shepherd;

/// Callers' threads that have a ring of their own in the sandbox, where no more rings can be made. They stay, because a
/// thread's ring ends with it.
constexpr std::size_t kCallers = 60;

/// Buffers of each size, 730 KiB in all, so that some calls can go on when there is no memory.
constexpr std::size_t kStock = 32;

/// The kernel closes io_uring's sockets a little after their process ends. So an lrpc-netd that is restarted at once
/// finds its port in use, and tries to get it this often, at this interval.
constexpr int kTries = 100;
constexpr std::chrono::milliseconds kBetweenTries{20};

/// A local binding and one of a remote host each take two descriptors: at most half of all are for them, so that
/// threads can have their rings and the nameserver can be asked.
void limit_to_descriptors(netpath::BrokerOptions& broker) {
  broker.max_paths = std::min(broker.max_paths, shim::descriptor_limit() / 8);
  broker.max_bindings = std::min(broker.max_bindings, shim::descriptor_limit() / 8);
  broker.max_bindings_per_host = std::min(broker.max_bindings_per_host, shim::descriptor_limit() / 16);
}
/// The same for those of Sun RPC: a quarter of the descriptors, of the other half.
std::size_t most_sun_bindings() { return std::min<std::size_t>(shim::descriptor_limit() / 8, 4096); }
/// And for those of processes that are USERs: at most an eighth of the descriptors. One process at a time is a USER;
/// eight bindings leave room for those that follow it, and for those that are refused. No user has more than half.
ServerOptions options_for_users(std::size_t users) {
  ServerOptions options;
  options.max_bindings = std::clamp<std::size_t>(users * 8, 2, std::max<std::size_t>(shim::descriptor_limit() / 16, 2));
  options.max_bindings_per_user = options.max_bindings / 2;
  options.max_bindings_per_client_process = options.max_bindings_per_user;
  options.max_descriptors_per_user = options.max_bindings_per_user * 2;
  return options;
}
}  // namespace

SunUse sun_use(const DaemonOptions& options) {
  SunUse use{!options.sun.empty()};
  for (const SunImport& one : options.sun_imports)
    (one.transport == netrpc::SunTransport::tcp ? use.by_tcp : use.by_udp) = true;
  return use;
}

netrpc::ProtocolKinds daemon_kinds() {
  return netrpc::all_kinds().add(netuser::user_kind()).add(netrpc::trace_kind(daemon::write_line));
}

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options) {
  // Each import for another host connects to it anew.
  auto settled = shim::settled_nameserver(options.nameserver);
  if (!settled) return settled.error();
  options.nameserver = *std::move(settled);
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  auto engine = netrpc::UringEngine::make(daemon->options_.engine);
  if (!engine) return engine.error();
  daemon->engine_ = std::move(engine).value();
  netrpc::HostOptions host;
  host.name = "lrpc-netd";
  host.address = daemon->options_.address;
  host.short_of_memory = daemon->options_.short_of_memory;
  host.notice = [self = daemon.get()](std::string text) { self->notice(std::move(text)); };
  daemon->host_ = std::make_unique<netrpc::Host>(std::move(host), daemon->clock_, *daemon->engine_);
  daemon->host_->pool().stock(kStock);
  Status composed = daemon->compose();
  for (int tries = 1; composed.code() == Errc::name_taken && tries < kTries; ++tries) {
    if (!daemon->options_.waits_for_port(composed.error(), kBetweenTries)) return Errc::call_cancelled;
    composed = daemon->compose();
  }
  if (!composed) return composed.error();
  if (auto shut = daemon->shut_itself_in(); !shut) return shut.error();

  netpath::BrokerOptions broker;
  broker.nameserver = daemon->options_.nameserver;
  if (daemon->options_.sandbox) broker.kept_threads = kCallers;
  limit_to_descriptors(broker);
  broker.authorise = daemon->options_.authorise;
  broker.short_of_memory = daemon->options_.short_of_memory;
  broker.own_address = daemon->host_->address().value;
  broker.foreign = daemon->sun_client_.get();
  broker.exported = [self = daemon.get()](std::string_view name) { return self->is_exported(name); };
  const Status serves = daemon::do_unless_told_to_end([&]() -> Status {
    auto brokered = netpath::RemoteBroker::start(*daemon->service_, std::move(broker));
    if (!brokered) return brokered.error();
    daemon->broker_ = std::move(brokered).value();
    daemon->service_->serve_with(*daemon->broker_);
    if (daemon->sun_) daemon->sun_->serve();
    // Receives only from here on, when this is the machine's only lrpc-netd: Ethernet and IP do not keep two apart, and
    // each would answer messages for the other.
    if (auto started = daemon->engine_->start(*daemon->host_, daemon->options_.threads); !started) return started;
    daemon->serve_users();
    return {};
  });
  if (!serves) return serves.error();
  daemon->register_programs();  // not above: a signal may end the process there, and these must be withdrawn
  return daemon;
}

Status Daemon::compose() {
  const netrpc::ProtocolKinds kinds = daemon_kinds();
  const auto description = netrpc::GraphDescription::parse(options_.graph, kinds);
  if (!description)
    return Error{description.code(), netrpc::with_path(options_.graph_name, description.error().message())};
  const auto tops = choose_tops(*description, options_.service, sun_use(options_));
  if (!tops) return Error{tops.code(), netrpc::with_path(options_.graph_name, tops.error().message())};
  decompose();
  const Shepherd inside(host_->monitor());
  auto graph = netrpc::Graph::compose(*host_, *description, kinds);
  if (!graph) return Error{graph.code(), netrpc::with_path(options_.graph_name, graph.error().message())};
  graph_ = std::make_unique<netrpc::Graph>(std::move(graph).value());
  for (const netrpc::InstanceDescription& instance : description->instances())
    if (instance.kind == "AUTH") {
      keyed_.push_back(graph_->find(instance.name));
      key_files_.push_back(instance.options.text("keys"));
    }
  if (std::ranges::none_of(description->instances(), [](const auto& one) { return one.kind == "ETH"; }))
    address_watch_ = netrpc::AddressWatch::make(*host_, *engine_);
  for (const auto& protocol : graph_->protocols())
    if (auto* const user = dynamic_cast<netuser::UserObject*>(protocol.get())) user_objects_.push_back(user);
  std::vector<netrpc::Protocol*> groups;
  for (const std::string& group : tops->groups) groups.push_back(graph_->find(group));
  service_ = std::make_unique<NetworkService>(*host_, *graph_->find(tops->calls), std::move(groups), options_.threads);
  if (auto enabled = service_->enable(); !enabled) return enabled;
  return prepare_sun(*tops);
}

Status Daemon::prepare_sun(const GraphTops& tops) {
  if (!options_.sun_imports.empty()) {
    const auto find = [&](const std::string& top) { return top.empty() ? nullptr : graph_->find(top); };
    sun_client_ = std::make_unique<SunClient>(*host_, SunClient::Below{find(tops.sun_udp), find(tops.sun_tcp)},
                                              options_.sun_imports);
    if (auto opened = sun_client_->open_sockets(); !opened) return opened;
  }
  if (options_.sun.empty()) return {};
  std::vector<netrpc::Protocol*> suns;
  for (const SunTop& top : tops.sun) suns.push_back(graph_->find(top.name));
  sun_tops_ = tops.sun;
  sun_ = std::make_unique<SunService>(*host_, std::move(suns),
                                      SunService::Options{options_.sun, options_.nameserver, most_sun_bindings(),
                                                          [this](std::string text) { notice(std::move(text)); }});
  return sun_->enable();
}

void Daemon::serve_users() {
  if (user_objects_.empty()) return;
  ServerOptions server = options_for_users(user_objects_.size());
  server.nameserver = options_.nameserver;
  users_ = std::make_unique<netuser::ServedUsers>(std::move(server));
  for (netuser::UserObject* const user : user_objects_)
    if (const Status served = users_->serve(*user, options_.authorise); !served)
      notice(fmt::format("no process can be '{}', for it is not exported: {}", user->name(), served.error().message()));
}

void Daemon::register_programs() {
  if (options_.sun_port == 0) return;
  using netrpc::SunTransport;
  const auto any = [&](bool SunTop::*stands_on) { return std::ranges::any_of(sun_tops_, stands_on); };
  for (const SunExport& what : options_.sun)
    for (const auto& [transport, there] :
         {std::pair{SunTransport::udp, any(&SunTop::udp)}, {SunTransport::tcp, any(&SunTop::tcp)}}) {
      if (!there) continue;
      auto made = netrpc::RpcbindRegistration::make(
          {what.program, what.version, options_.sun_port, options_.sun_address, transport});
      if (made) {
        registered_.push_back(std::move(made).value());
        continue;
      }
      notice(fmt::format("rpcbind does not tell clients of '{}': {}", what.name, made.error().message()));
      if (made.code() == Errc::no_nameserver || made.code() == Errc::timed_out) return;  // the others would fail, too
    }
}

/// All sockets are open, and no thread is started.
Status Daemon::shut_itself_in() {
  if (!options_.sandbox) return sandbox::drop_capabilities(std::uint64_t{1} << CAP_NET_RAW);
  (void)engine_->prepare_rings(options_.threads + kCallers);
  std::vector<std::uint16_t> tcp_ports;
  for (const SunImport& one : options_.sun_imports)
    if (one.transport == netrpc::SunTransport::tcp) tcp_ports.push_back(one.port);
  sandbox::Options wanted = sandbox_of_daemon(key_files_, options_.state_file, tcp_ports);
  wanted.required = options_.sandbox_required;
  auto entered = sandbox::enter(wanted);
  if (!entered) return entered.error();
  shut_in_ = std::move(entered).value();
  return {};
}

void Daemon::decompose() noexcept {
  const Shepherd inside(host_->monitor());
  sun_client_.reset();
  sun_.reset();
  service_.reset();
  keyed_.clear();
  key_files_.clear();
  user_objects_.clear();
  address_watch_.reset();
  graph_.reset();
}

Daemon::~Daemon() {
  netrpc::RpcbindRegistration::end_all(registered_);
  if (sun_) sun_->stop_serving();
  if (sun_client_) sun_client_->stop_calling();
  if (service_) {
    service_->stop_calling();
    service_->stop_serving();
  }
  users_.reset();
  broker_.reset();
  if (engine_) engine_->stop();
  if (host_) decompose();
}

/// Names with lrpc's own prefix are never exported, whatever the patterns say.
bool Daemon::is_exported(std::string_view name) const {
  if (name.starts_with(shim::kOwnPrefix)) return false;
  const std::string text(name);
  return std::any_of(options_.exported.begin(), options_.exported.end(), [&text](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), text.c_str(), FNM_PERIOD) == 0;
  });
}

std::string Daemon::address() const { return to_string(host_->address()); }

/// Called inside the monitor, where nothing may block on the log: another thread writes the text.
void Daemon::notice(std::string text) {
  {
    const std::lock_guard lock(notices_mutex_);
    if (notices_.size() >= kNotices) return;
    notices_.push_back(std::move(text));
  }
  options_.noticed();
}

std::vector<std::string> Daemon::take_notices() {
  const std::lock_guard lock(notices_mutex_);
  return std::exchange(notices_, {});
}

Result<std::string> Daemon::reread_keys() {
  const Shepherd inside(host_->monitor());
  std::string report;
  for (netrpc::Protocol* const protocol : keyed_) {
    std::string why;
    netrpc::control::RereadKeys again{.why = &why};
    if (const Errc outcome = netrpc::control::ask(*protocol, again); outcome != Errc::ok)
      return Error{outcome, fmt::format("{}: the keys stay as they are: {}", protocol->name(), why)};
    report += fmt::format("{}{} has {} keys", report.empty() ? "" : ", ", protocol->name(), again.keys);
  }
  return report;
}

std::string Daemon::state() {
  const netpath::BrokerStatistics broker = broker_->statistics();
  const std::vector<netpath::GroupBinding> groups = broker_->group_bindings();
  const netrpc::EngineStatistics engine = engine_->statistics();
  const Shepherd inside(host_->monitor());
  const NetworkStatistics& network = service_->statistics();
  std::string text = fmt::format(
      "remote bindings of this machine {}, of {} other hosts {}; calls {} (failed {}), served {} (refused {}); "
      "datagrams sent {}, received {}; buffers in use {}\n"
      "engine: waits {}, sent apart {}, threads woken {}, takeovers {}, truncated {}\n",
      broker.paths, broker.hosts, broker.bindings, network.calls, network.calls_failed, network.served, network.refused,
      engine.sent, engine.received, host_->pool().in_use(), engine.waits, engine.flushes, engine.wakes,
      engine.takeovers, engine.truncated);
  for (const netpath::GroupBinding& one : groups) {
    const auto bound = std::ranges::count_if(one.members, &netpath::GroupBinding::Member::bound);
    text += fmt::format("{}@{} of user {}: {} of {} members bound\n", one.name, one.group, one.user, bound,
                        one.members.size());
    for (const netpath::GroupBinding::Member& member : one.members)
      if (!member.bound)
        text += fmt::format("{}@{} of user {}: {} is not bound: {}\n", one.name, one.group, one.user,
                            to_string(netrpc::HostAddress{member.host}), member.why);
  }
  for (const auto& protocol : graph_->protocols()) {
    netrpc::control::Statistics counted;
    if (netrpc::control::ask(*protocol, counted) != Errc::ok) continue;
    text += fmt::format(
        "{}: sent {}, received {}, sent again {}, duplicates {}, malformed {}, nobody's {}, refused {}, failed {}; "
        "sessions {}, "
        "state {}\n",
        protocol->name(), counted.sent, counted.received, counted.retransmissions, counted.duplicates,
        counted.malformed, counted.no_session, counted.refused, counted.failed, counted.sessions, counted.state);
  }
  return text;
}

}  // namespace lrpc::netd
