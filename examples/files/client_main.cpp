// lrpc-files: ls, get, put and sum on a directory that lrpc-files-server exports.
#include <fmt/format.h>
#include <sodium.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "transfer.h"

int main(int argc, char** argv) {
  std::string name = "files";
  std::string remote;
  std::string local;
  int wait_ms = 0;
  lrpc::ImportOptions options;
  CLI::App app{"Works on a directory that another domain exports."};
  app.require_subcommand(1);
  app.add_option("--name", name, "The exported name")->capture_default_str();
  app.add_option("--nameserver", options.nameserver,
                 "Nameserver socket (default: $LRPC_SOCKET, then the usual places)");
  app.add_option("--wait", wait_ms, "Milliseconds to wait for the name to appear")->capture_default_str();
  auto* ls = app.add_subcommand("ls", "List a directory");
  ls->add_option("path", remote, "Path in the exported directory (default: the directory itself)");
  auto* get = app.add_subcommand("get", "Copy a file or a directory out");
  get->add_option("remote", remote, "Path in the exported directory")->required();
  get->add_option("local", local, "Where to put it")->required();
  auto* put = app.add_subcommand("put", "Copy a file or a directory in");
  put->add_option("local", local, "What to copy")->required();
  put->add_option("remote", remote, "Path in the exported directory")->required();
  auto* sum = app.add_subcommand("sum", "Print SHA-256 checksums, as sha256sum does");
  sum->add_option("path", remote, "A file or a directory (default: everything)");
  CLI11_PARSE(app, argc, argv);
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
    if (ls->parsed()) files::list(*client, remote);
    if (get->parsed()) fmt::print("{} files\n", files::get(*client, remote, local));
    if (put->parsed()) fmt::print("{} files\n", files::put(*client, local, remote));
    if (sum->parsed()) files::sum(*client, remote);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lrpc-files: {}\n", error.what());
    return 1;
  }
  return 0;
}
