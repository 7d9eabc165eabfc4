// lrpc-files: ls, get, put and sum on a directory that lrpc-files-server exports.
#include <fmt/format.h>
#include <sodium.h>

#include <chrono>
#include <exception>
#include <string>

#include "lrpc/command_line.h"
#include "transfer.h"

int main(int argc, char** argv) {
  std::string name = "files";
  std::string remote;
  std::string local;
  int wait_ms = 0;
  lrpc::ImportOptions options;
  lrpc::command_line::Program program("Works on a directory that another domain exports.");
  program.require_subcommand();
  program.option("--name", name, "The exported name").show_default();
  program.option("--nameserver", options.nameserver,
                 "Nameserver socket (default: $LRPC_SOCKET, then the usual places)");
  program.option("--wait", wait_ms, "Milliseconds to wait for the name to appear").non_negative().show_default();
  const auto ls = program.subcommand("ls", "List a directory");
  ls.option("path", remote, "Path in the exported directory (default: the directory itself)");
  const auto get = program.subcommand("get", "Copy a file or a directory out");
  get.option("remote", remote, "Path in the exported directory").required();
  get.option("local", local, "Where to put it").required();
  const auto put = program.subcommand("put", "Copy a file or a directory in");
  put.option("local", local, "What to copy").required();
  put.option("remote", remote, "Path in the exported directory").required();
  const auto sum = program.subcommand("sum", "Print SHA-256 checksums, as sha256sum does");
  sum.option("path", remote, "A file or a directory (default: everything)");
  if (const auto status = program.parse(argc, argv)) return *status;
  options.timeout = std::chrono::milliseconds(wait_ms);

  if (sodium_init() < 0) {
    fmt::print(stderr, "lrpc-files: cannot initialise libsodium\n");
    return 1;
  }
  auto client = Files::Client::import(name, options);
  if (!client) {
    fmt::print(stderr, "lrpc-files: cannot import '{}': {}\n", name, client.error().message());
    return 1;
  }
  try {
    if (ls.parsed()) files::list(*client, remote);
    if (get.parsed()) fmt::print("{} files\n", files::get(*client, remote, local));
    if (put.parsed()) fmt::print("{} files\n", files::put(*client, local, remote));
    if (sum.parsed()) files::sum(*client, remote);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lrpc-files: {}\n", files::printable(error.what()));
    return 1;
  }
  return program.printed(0);
}
