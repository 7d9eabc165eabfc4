#include "helper.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/program.h"

namespace lrpc::bench {

Result<std::string> helper_path(std::string_view program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return system_error("readlink /proc/self/exe", error.value());
  const auto path = self.parent_path() / program;
  if (::access(path.c_str(), X_OK) != 0) return system_error("cannot run " + path.string(), errno);
  return path.string();
}

bool found_in_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');)
    if (::access((std::filesystem::path(directory) / program).c_str(), X_OK) == 0) return true;
  return false;
}

Result<std::string> run_under_callgrind(std::string_view helper, const std::vector<std::string>& options,
                                        const std::vector<std::string>& arguments, const PrivateDirectory& directory) {
  const std::string out = directory.file("callgrind.out");
  std::error_code ignored;
  std::filesystem::remove(out, ignored);
  const auto path = helper_path(helper);
  if (!path) return path.error();
  std::vector<std::string> command{"valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=" + out};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(*path);
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (auto ran = run_program(command, std::chrono::seconds(120)); !ran) return ran.error();
  return out;
}

}  // namespace lrpc::bench
