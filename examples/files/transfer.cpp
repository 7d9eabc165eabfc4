#include "transfer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <span>
#include <system_error>
#include <vector>

namespace files {
namespace {

constexpr std::size_t kChunk = 8 * 1024;
// A server may list entries and nested directories without end. Within these limits a client needs some 600 MB at most.
constexpr std::size_t kMostEntries = 64 * 1024;  // of one directory
constexpr std::ptrdiff_t kDeepest = 32;          // directories inside one another

/// Returns the value, or throws a TransferError that says why the server refused or the call failed.
template <class T>
typename lrpc::Result<T, Files::Refused>::value_type need(lrpc::Result<T, Files::Refused> result,
                                                          const std::string& path) {
  if (result) return *std::move(result);
  if (const auto* refused = result.template raised<Files::Refused>()) {
    throw TransferError(fmt::format("{}: {}", path, refused->what.view()));
  }
  throw TransferError(fmt::format("{}: {}", path, result.error().message()));
}

[[noreturn]] void local_error(const std::filesystem::path& path) {
  throw TransferError(fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
}

std::string join(const std::string& directory, std::string_view name) {
  return directory.empty() || directory == "." ? std::string(name) : fmt::format("{}/{}", directory, name);
}

/// Checks a name that a server sent before it becomes part of a path, even a local one: it must be a single component.
bool safe_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
}

/// The entries of a directory, sorted by name. Each name is a safe component, so each directory adds a '/' to the path.
std::vector<Files::DirectoryEntry> entries_of(Files::Client& client, const std::string& remote) {
  if (std::ranges::count(remote, '/') >= kDeepest)
    throw TransferError(fmt::format("{}: more than {} directories within each other", remote, kDeepest));
  const Files::Listing listing = need(client.List(remote), remote);
  std::vector<Files::DirectoryEntry> all;
  for (;;) {
    const Files::NextResults some = need(client.Next(listing), remote);
    const std::size_t count = std::min<std::size_t>(some.count, some.entries.size());  // the server sent it: check
    if (count == 0) break;
    if (all.size() + count > kMostEntries)
      throw TransferError(fmt::format("{}: more than {} entries", remote, kMostEntries));
    all.insert(all.end(), some.entries.begin(), some.entries.begin() + static_cast<std::ptrdiff_t>(count));
  }
  (void)client.CloseListing(listing);
  if (!std::ranges::all_of(all, safe_component, [](const auto& entry) { return entry.name.view(); }))
    throw TransferError(fmt::format("{}: the server sent a bad name", remote));
  std::ranges::sort(all, {}, [](const Files::DirectoryEntry& entry) { return entry.name.view(); });
  return all;
}

void read_file(Files::Client& client, const std::string& remote,
               const std::function<void(std::span<const std::byte>)>& take) {
  const Files::OpenResults opened = need(client.Open(remote, Files::Mode::Read, 0), remote);
  std::vector<std::byte> chunk(kChunk);
  for (Files::Offset at = 0;;) {
    lrpc::Buffer data{std::span(chunk)};
    need(client.Read(opened.file, at, kChunk, data), remote);
    if (data.size() == 0) break;
    take(data.contents());
    at += static_cast<Files::Offset>(data.size());
  }
  (void)client.Close(opened.file);
}

void get_file(Files::Client& client, const std::string& remote, const std::filesystem::path& local) {
  const lrpc::UniqueFd fd(open(local.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) local_error(local);
  read_file(client, remote, [&](std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t put = write(fd.get(), data.data(), data.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) local_error(local);
      data = data.subspan(static_cast<std::size_t>(put));
    }
  });
}

void put_file(Files::Client& client, const std::filesystem::path& local, const std::string& remote) {
  const lrpc::UniqueFd fd(open(local.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) local_error(local);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) local_error(local);
  const Files::OpenResults opened = need(client.Open(remote, Files::Mode::Write, status.st_mode & 0777U), remote);
  std::vector<std::byte> chunk(kChunk);
  for (Files::Offset at = 0;;) {
    const ssize_t got = read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) local_error(local);
    if (got == 0) break;
    const auto data = std::span<const std::byte>(chunk).first(static_cast<std::size_t>(got));
    if (need(client.Write(opened.file, at, data), remote) != data.size()) {
      throw TransferError(fmt::format("{}: short write", remote));
    }
    at += got;
  }
  (void)client.Close(opened.file);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown(text);
  unsigned char before = 0;
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0)) c = '?';
    before = byte;
  }
  return shown;
}

std::size_t get(Files::Client& client, const std::string& remote, const std::filesystem::path& local) {
  const Files::Stat status = need(client.StatPath(remote), remote);
  if (status.kind != Files::Kind::Directory) {
    get_file(client, remote, local);
    return 1;
  }
  std::filesystem::create_directories(local);
  std::size_t copied = 0;
  for (const Files::DirectoryEntry& entry : entries_of(client, remote)) {
    if (entry.stat.kind == Files::Kind::Other) {
      fmt::print(stderr, "{}: neither file nor directory, left out\n", printable(join(remote, entry.name)));
      continue;
    }
    copied += get(client, join(remote, entry.name), local / entry.name.view());
  }
  return copied;
}

std::size_t put(Files::Client& client, const std::filesystem::path& local, const std::string& remote) {
  if (!std::filesystem::is_directory(local)) {
    put_file(client, local, remote);
    return 1;
  }
  if (!remote.empty() && remote != ".") need(client.MakeDirectory(remote), remote);
  std::size_t copied = 0;
  for (const auto& entry : std::filesystem::directory_iterator(local)) {
    if (entry.is_symlink() || !(entry.is_directory() || entry.is_regular_file())) {
      fmt::print(stderr, "{}: neither file nor directory, left out\n", entry.path().string());
      continue;
    }
    copied += put(client, entry.path(), join(remote, entry.path().filename().string()));
  }
  return copied;
}

void list(Files::Client& client, const std::string& remote) {
  const auto line = [](std::string_view name, const Files::Stat& stat) {
    const char kind = stat.kind == Files::Kind::Directory ? 'd' : stat.kind == Files::Kind::Regular ? '-' : '?';
    fmt::print("{}{:04o} {:>12} {}\n", kind, stat.permissions, stat.size, printable(name));
  };
  const Files::Stat status = need(client.StatPath(remote), remote);
  if (status.kind != Files::Kind::Directory) return line(remote, status);
  for (const Files::DirectoryEntry& entry : entries_of(client, remote)) line(entry.name, entry.stat);
}

void sum(Files::Client& client, const std::string& remote) {
  const Files::Stat status = need(client.StatPath(remote), remote);
  if (status.kind == Files::Kind::Directory) {
    for (const Files::DirectoryEntry& entry : entries_of(client, remote)) {
      if (entry.stat.kind != Files::Kind::Other) sum(client, join(remote, entry.name));
    }
    return;
  }
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  read_file(client, remote, [&](std::span<const std::byte> data) {
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(data.data()), data.size());
  });
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&state, digest.data());
  fmt::print("{:02x}  {}\n", fmt::join(digest, ""), printable(remote));
}

}  // namespace files
