// lrpc-netd: the domain that holds the protocol graph. Its options and its signals; the rest is in daemon.h.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon.h"
#include "default_graph.h"
#include "graph_tops.h"
#include "local_users.h"
#include "lrpc/command_line.h"
#include "lrpc/daemon.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/reserve.h"
#include "netrpc/devices/device/interface.h"
#include "netrpc/graph/check.h"
#include "netrpc/graph/options.h"
#include "netrpc/protocols/auth/auth.h"
#include "netrpc/protocols/auth/keys.h"

namespace {

using lrpc::netd::Daemon;
using lrpc::netd::DaemonOptions;
namespace netrpc = lrpc::netrpc;

/// Sent by this process to itself: there is something for the log.
constexpr int kNoticed = SIGUSR2;

constexpr int kSunPort = 24211;

struct CommandLine {
  DaemonOptions daemon;
  std::string graph_file;
  bool check = false;
  std::string picture;
  std::string interface;
  std::string address;
  std::string keys;
  std::vector<std::string> users;
  std::vector<std::string> groups;
  bool protocols = false;
  bool generate_key = false;
  bool insecure = false;
  bool udp = false;
  std::vector<std::string> sun;
  std::vector<std::string> sun_imports;
  int sun_port = 0;
  lrpc::daemon::Options common;
};

void declare(lrpc::command_line::Program& program, CommandLine& line) {
  program.version("lrpc-netd " LRPC_VERSION);
  // An empty value is most often that of a variable that is not set: it is an error, so that no default replaces it.
  const auto graph =
      program.option("--graph", line.graph_file, "The protocol graph (default: one for Ethernet and IP, or UDP)")
          .help_text("FILE")
          .not_empty();
  const auto interface = program
                             .option("--interface", line.interface,
                                     "The network interface (default: that of the default route, or the only one)")
                             .help_text("NAME")
                             .not_empty();
  program.option("--address", line.address, "This host's address (default: the interface's)")
      .help_text("ADDRESS")
      .not_empty();
  const auto keys =
      program
          .option("--keys", line.keys, "A file of the keys shared with other hosts; each line: HOST|NETWORK/BITS|* KEY")
          .help_text("FILE")
          .not_empty();
  const auto insecure = program.flag("--insecure", line.insecure,
                                     "Use no keys: anybody on the network can make calls, read calls and change them");
  const auto udp =
      program.flag("--udp", line.udp, "Send over UDP, which needs no CAP_NET_RAW; all hosts must do the same");
  for (const auto& option : {interface, keys, insecure, udp}) option.excludes(graph);
  keys.excludes(insecure);
  program.option("--service", line.daemon.service, "The instance of --graph that calls go through (default: the last)")
      .help_text("NAME")
      .not_empty();
  program.option("--export", line.daemon.exported, "A name, or a pattern of names, that other hosts may import")
      .help_text("NAME|PATTERN ...");
  program.option("--sun", line.sun, "A name that anybody may call by Sun RPC, as this program and version (default: 1)")
      .help_text("NAME=PROGRAM[/VERSION] ...");
  program
      .option("--sun-import", line.sun_imports,
              "A Sun RPC program of a host, which this machine's clients import as NAME@HOST (rpcbind tells the port)")
      .help_text("NAME@HOST[:PORT]=PROGRAM[/VERSION][,tcp] ...");
  program
      .option("--sun-port", line.sun_port,
              "The UDP and TCP port of Sun RPC, for rpcbind to tell (default: 24211; with --graph: none)")
      .in_range(1, 65535);
  program
      .option("--allow-user", line.users,
              "A user of this machine who may call other hosts, besides root and lrpc-netd's own user")
      .help_text("USER ...");
  program.option("--allow-group", line.groups, "A group whose members may call other hosts").help_text("GROUP ...");
  program.option("--nameserver", line.daemon.nameserver, "Socket of lrpcd (default: where every program looks)")
      .help_text("SOCKET")
      .not_empty();
  program.option("--threads", line.daemon.threads, "Threads that receive while no caller does").in_range(1, 256);
  program
      .choice("--backend", line.daemon.engine, "What waits for the network: auto, io_uring or epoll",
              {{"auto", netrpc::EngineKind::automatic},
               {"io_uring", netrpc::EngineKind::uring},
               {"epoll", netrpc::EngineKind::epoll}})
      .help_text("auto|io_uring|epoll");
  program.flag("--check", line.check, "Check the graph and the keys, and exit");
  program.option("--picture", line.picture, "Draw the graph and exit").one_of({"text", "svg"}).help_text("text|svg");
  program.flag("--protocols", line.protocols,
               "Print the protocols that a graph can name, with their options, and exit");
  program.flag("--generate-key", line.generate_key, "Print a new key and exit");
  program
      .option("--state", line.daemon.state_file, "The file into which SIGUSR1 writes the statistics (default: the log)")
      .help_text("FILE")
      .not_empty();
  lrpc::daemon::declare(program, line.common, "once its sockets are open", "ready");
}

int complain(const std::string& what) {
  const bool whole_lines = what.ends_with('\n');  // as a graph's errors are
  std::fprintf(stderr, "lrpc-netd: %s%s", what.c_str(), whole_lines ? "" : "\n");
  return 1;
}

/// Why two values of one option exclude each other; empty: they do not.
std::string clash(const lrpc::netd::SunExport& a, const lrpc::netd::SunExport& b) {
  if (a.program != b.program || a.version != b.version) return {};
  return fmt::format("'{}' and '{}' are one program", a.name, b.name);
}
std::string clash(const lrpc::netd::SunImport& a, const lrpc::netd::SunImport& b) {
  if (a.name != b.name || a.host != b.host) return {};
  return fmt::format("'{}@{}' is there twice", a.name, a.host);
}

template <class One>
lrpc::Status read_each(std::string_view option, const std::vector<std::string>& texts,
                       lrpc::Result<One> (*parse)(const std::string&), std::vector<One>& all) {
  for (const std::string& text : texts) {
    auto parsed = parse(text);
    if (!parsed) return lrpc::Error{parsed.code(), fmt::format("{}: {}", option, parsed.error().message())};
    for (const One& other : all)
      if (const std::string why = clash(other, *parsed); !why.empty())
        return lrpc::Error{lrpc::Errc::invalid_argument, fmt::format("{}: {}", option, why)};
    all.push_back(*std::move(parsed));
  }
  return {};
}

lrpc::Status read_sun_programs(CommandLine& line) {
  if (auto read = read_each("--sun", line.sun, lrpc::netd::parse_sun_export, line.daemon.sun); !read) return read;
  return read_each("--sun-import", line.sun_imports, lrpc::netd::parse_sun_import, line.daemon.sun_imports);
}

/// Chooses the graph's text, and its name in errors. Errors: those of reading it, and of finding the interface.
lrpc::Status choose_graph(CommandLine& line) {
  DaemonOptions& daemon = line.daemon;
  if (auto read = read_sun_programs(line); !read) return read;
  if (!daemon.sun.empty())
    daemon.sun_port =
        static_cast<std::uint16_t>(line.sun_port != 0 || !line.graph_file.empty() ? line.sun_port : kSunPort);
  if (!line.address.empty()) {
    const auto address = netrpc::parse_host(line.address);
    if (!address || !address->known())
      return lrpc::Error{lrpc::Errc::invalid_argument, "--address: " + netrpc::why_no_host(line.address)};
    daemon.address = *address;
  }
  if (!line.graph_file.empty()) {
    auto text = netrpc::read_graph_file(line.graph_file);
    if (!text) return text.error();
    daemon.graph = std::move(text).value();
    daemon.graph_name = line.graph_file;
    return {};
  }
  lrpc::netd::DefaultGraph choice;
  choice.udp = line.udp;
  choice.authenticated = !line.insecure;
  choice.keys = line.keys;
  if (!line.udp || !daemon.address.known() || !line.interface.empty()) {
    auto interface = netrpc::find_interface(line.interface);
    if (!interface) return lrpc::Error{interface.code(), fmt::format("--interface: {}", interface.error().message())};
    choice.interface = interface->name;
    if (!daemon.address.known()) daemon.address = interface->host;
    if (!daemon.address.known()) {
      return lrpc::Error{
          lrpc::Errc::invalid_argument,
          "interface " + interface->name + " has no IPv4 address: give it one, or say which by --address"};
    }
  }
  choice.address = daemon.address;
  choice.sun_port = daemon.sun_port;
  if (!line.address.empty()) choice.sun_address = daemon.sun_address = daemon.address;
  choice.calls_sun = !daemon.sun_imports.empty();
  daemon.graph = lrpc::netd::default_graph(choice);
  daemon.graph_name = "built-in graph";
  return {};
}

/// Checks what lrpc-netd needs of a graph beyond the rules for all graphs, and the keys that its AUTHs read.
lrpc::Status check_rules(const CommandLine& line, const netrpc::GraphDescription& graph) {
  const auto tops = lrpc::netd::choose_tops(graph, line.daemon.service, lrpc::netd::sun_use(line.daemon));
  if (!tops) return tops.error();
  if (line.graph_file.empty() && line.keys.empty()) return {};  // the built-in graph is only to be shown
  for (const netrpc::InstanceDescription& one : graph.instances()) {
    if (one.kind != "AUTH") continue;
    if (const lrpc::Status can = netrpc::check_auth(one.options); !can)
      return lrpc::Error{can.code(), fmt::format("{}: {}: {}", one.line, one.name, can.error().message())};
  }
  return {};
}

/// --check and --picture: a file's graph, or the built-in one. A picture can be had of graphs for other programs, too.
int check(CommandLine& line) {
  const netrpc::GraphRules rules = [&line](const netrpc::GraphDescription& graph) {
    return line.check ? check_rules(line, graph) : lrpc::Status();
  };
  if (!line.graph_file.empty()) {
    if (auto read = read_sun_programs(line); !read) return complain(read.error().message());
    const auto picture = line.picture.empty()    ? netrpc::GraphPicture::none
                         : line.picture == "svg" ? netrpc::GraphPicture::svg
                                                 : netrpc::GraphPicture::text;
    return netrpc::check_graph_file(line.graph_file, lrpc::netd::daemon_kinds(), std::cout, picture, rules);
  }
  if (auto chosen = choose_graph(line); !chosen) return complain(chosen.error().message());
  const auto parsed = netrpc::GraphDescription::parse(line.daemon.graph, lrpc::netd::daemon_kinds());
  if (!parsed) return complain(parsed.error().message());
  const netrpc::GraphDescription& graph = *parsed;
  if (const lrpc::Status fits = rules(graph); !fits)
    return complain(netrpc::with_path(line.daemon.graph_name, fits.error().message()));
  std::cout << (line.picture == "svg"    ? graph.draw_svg()
                : line.picture == "text" ? graph.draw_text()
                                         : line.daemon.graph);
  return 0;
}

/// While this lives, the last of the reserve is for threads that carry messages. The daemon outlives it.
class LastOfReserve {
 public:
  explicit LastOfReserve(const Daemon& daemon) noexcept {
    carrying.store(&daemon);
    lrpc::reserve::keep_last_for([]() noexcept {
      const Daemon* const of = carrying.load();
      return of == nullptr || of->is_carrying();
    });
  }
  LastOfReserve(const LastOfReserve&) = delete;
  LastOfReserve& operator=(const LastOfReserve&) = delete;
  ~LastOfReserve() {
    lrpc::reserve::keep_last_for(nullptr);
    carrying.store(nullptr);
  }

 private:
  static inline std::atomic<const Daemon*> carrying{nullptr};
};

/// O_NONBLOCK: it may be a FIFO that nobody reads.
lrpc::UniqueFd open_state_file(const std::string& file, int more) {
  return lrpc::UniqueFd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more, 0666));
}

void tell_state(Daemon& daemon, const std::string& file) {
  const std::string state =
      daemon.state() + fmt::format("reserve: {} bytes of {} in use, {} at most so far\n", lrpc::reserve::used(),
                                   lrpc::reserve::kBytes, lrpc::reserve::most_used());
  if (file.empty()) {
    std::istringstream lines(state);
    for (std::string text; std::getline(lines, text);) spdlog::info("{}", text);
    return;
  }
  const lrpc::UniqueFd out = open_state_file(file, O_TRUNC);
  std::string_view left = state;
  for (ssize_t put = 0; out && !left.empty(); left.remove_prefix(static_cast<std::size_t>(put)))
    if ((put = ::write(out.get(), left.data(), left.size())) <= 0) break;
  if (!left.empty()) spdlog::warn("cannot write {}: {}", file, std::strerror(errno));
}

void reread_keys(Daemon& daemon) {
  auto keys = daemon.reread_keys();
  if (!keys) return spdlog::warn("{}", keys.error().message());
  spdlog::info("{}", keys->empty() ? "no layer reads keys" : *keys);
}

/// False: a signal that ends the daemon has come, before or meanwhile.
bool wait_for_port(const lrpc::Error& taken, std::chrono::milliseconds pause) {
  static bool told = false;
  if (!std::exchange(told, true)) spdlog::warn("waits for a port of another process: {}", taken.message());
  return !lrpc::daemon::told_to_end(pause);
}

int serve(CommandLine& line) {
  // First, so that nobody can read keys or nonces out of this process.
  if (auto started = lrpc::daemon::start("lrpc-netd", line.common); !started)
    return complain(started.error().message());
  lrpc::shim::raise_descriptor_limit();  // each binding takes two, each thread that receives one
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, kNoticed}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  if (line.graph_file.empty() && !line.insecure && line.keys.empty())
    return complain(
        "say --keys FILE (a line for each host: its address and a key that --generate-key has made), or --insecure");
  if (auto chosen = choose_graph(line); !chosen) return complain(chosen.error().message());
  auto may_call = lrpc::netd::who_may_call(line.users, line.groups);
  if (!may_call) return complain(may_call.error().message());
  line.daemon.authorise = std::move(may_call).value();
  line.daemon.sandbox = line.common.sandbox != "off";
  line.daemon.sandbox_required = line.common.sandbox == "required";
  // In the sandbox only an existing file can be written.
  if (const std::string& file = line.daemon.state_file; !file.empty() && !open_state_file(file, 0))
    return complain("--state: cannot write " + file + ": " + std::strerror(errno));
  line.daemon.noticed = [main = ::pthread_self()] { ::pthread_kill(main, kNoticed); };
  line.daemon.short_of_memory = &lrpc::reserve::short_of_memory;
  line.daemon.waits_for_port = wait_for_port;
  auto daemon = Daemon::start(line.daemon);
  if (daemon.code() == lrpc::Errc::call_cancelled) return 0;
  if (!daemon) return complain(daemon.error().message());
  Daemon& running = **daemon;
  const LastOfReserve kept(running);
  lrpc::daemon::log_sandbox(running.shut_in());
  spdlog::info(
      "{} is on the network{}; other hosts may import {}", running.address(),
      running.authenticates() ? "" : " WITHOUT AUTHENTICATION",
      line.daemon.exported.empty() ? std::string("nothing") : fmt::format("{}", fmt::join(line.daemon.exported, ", ")));
  if (!line.sun.empty()) spdlog::info("anybody may call by Sun RPC: {}", fmt::join(line.sun, ", "));
  if (!line.sun_imports.empty())
    spdlog::info("this machine's clients call by Sun RPC: {}", fmt::join(line.sun_imports, ", "));
  std::printf("lrpc-netd %s is %s on the network\n", LRPC_VERSION, running.address().c_str());
  std::fflush(stdout);
  if (auto told = lrpc::daemon::tell_ready(line.common); !told) return complain(told.error().message());
  for (;;) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (number == kNoticed) {
      for (const std::string& text : running.take_notices()) spdlog::warn("{}", text);
    } else if (number == SIGUSR1 || number == SIGHUP) {
      try {
        number == SIGUSR1 ? tell_state(running, line.daemon.state_file) : reread_keys(running);
      } catch (const std::bad_alloc&) {
        lrpc::daemon::write_line("lrpc-netd: no memory to do what a signal has asked for");
      }
    } else {
      spdlog::info("stops");
      lrpc::daemon::let_signals_kill();
      return 0;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  lrpc::command_line::Program program(
      "The network domain of lrpc: carries this machine's calls to other hosts, and theirs to its servers.",
      "lrpc-netd");
  CommandLine line;
  declare(program, line);
  if (const auto status = program.parse(argc, argv)) return *status;
  try {
    if (line.generate_key) {
      const std::string key = netrpc::auth::generate_key();
      if (key.empty()) return complain("no key could be made: libsodium cannot be initialised");
      std::printf("%s\n", key.c_str());
      return program.printed(0);
    }
    if (line.protocols) {
      std::cout << netrpc::describe(lrpc::netd::daemon_kinds());
      return program.printed(0);
    }
    if (line.check || !line.picture.empty()) return program.printed(check(line));
    return serve(line);
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}
