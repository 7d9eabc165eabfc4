#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "commands.h"
#include "lrpc/detail/shim/binder/ask_nameserver.h"

namespace lrpc::tools {
namespace {

constexpr std::chrono::milliseconds kAnswerTime{10'000};

}  // namespace

int complain(const Error& error, int status) {
  tell(error.message());
  return status;
}

void tell(std::string_view line) noexcept {
  try {
    fmt::print(stderr, "lrpc: {}\n", line);
  } catch (const std::exception&) {  // the standard error cannot be written
  }
}

int list_names(const std::string& nameserver) {
  auto socket = shim::connect_nameserver(nameserver);
  if (!socket) return complain(socket.error());
  std::vector<shim::ListedName> names;
  for (bool more = true; more;) {
    const shim::ListRequest next{names.empty() ? "" : names.back().name};
    auto page = shim::ask_nameserver<shim::Listed>(socket->get(), next, kAnswerTime);
    if (!page) return complain(page.error());
    more = page->more && !page->names.empty();
    std::ranges::move(page->names, std::back_inserter(names));
  }
  std::size_t widest_name = 4;
  std::size_t widest_interface = 9;
  for (const auto& one : names) {
    widest_name = std::max(widest_name, one.name.size());
    widest_interface = std::max(widest_interface, shim::version_of(one.interface.view()).size());
  }
  fmt::print("{:{}}  {:{}}  {:>7}  {:>5}\n", "NAME", widest_name, "INTERFACE", widest_interface, "PID", "UID");
  for (const auto& one : names) {
    fmt::print("{:{}}  {:{}}  {:>7}  {:>5}\n", one.name, widest_name, shim::version_of(one.interface.view()),
               widest_interface, one.server.pid, one.server.uid);
  }
  return 0;
}

int describe_name(const std::string& nameserver, const std::string& name) {
  if (!shim::valid_name(name)) return complain(shim::not_a_name(name));
  auto socket = shim::connect_nameserver(nameserver);
  if (!socket) return complain(socket.error());
  const auto described = shim::ask_nameserver<shim::Described>(socket->get(), shim::DescribeRequest{name}, kAnswerTime);
  if (!described) return complain(described.error());
  fmt::print("{}{}", described->text, described->text.ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace lrpc::tools
